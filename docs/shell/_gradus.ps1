
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'gradus' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'gradus'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'gradus' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('train', 'train', [CompletionResultType]::ParameterValue, 'Train an agent and write a run folder')
            [CompletionResult]::new('eval', 'eval', [CompletionResultType]::ParameterValue, 'Evaluate trained policies')
            [CompletionResult]::new('play', 'play', [CompletionResultType]::ParameterValue, 'Play an episode in the terminal, or write it as an animated GIF')
            [CompletionResult]::new('probe', 'probe', [CompletionResultType]::ParameterValue, 'Try an agent in probe worlds, the smallest ones there are, and say which properties it has. Exit code 1 if one is missing')
            [CompletionResult]::new('values', 'values', [CompletionResultType]::ParameterValue, 'Draw the values and the greedy actions of a policy, in the terminal and as a figure')
            [CompletionResult]::new('explain', 'explain', [CompletionResultType]::ParameterValue, 'Say in words what looks sick in a run, and which page explains it')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Write a policy with a model card, its evaluation and an animation, to be published')
            [CompletionResult]::new('sft', 'sft', [CompletionResultType]::ParameterValue, 'Supervised warm start: train a fresh policy on the known answers of a text task')
            [CompletionResult]::new('reward-model', 'reward-model', [CompletionResultType]::ParameterValue, 'Train a reward model of a text task from preferences')
            [CompletionResult]::new('inspect', 'inspect', [CompletionResultType]::ParameterValue, 'Compare the advantages and gradients of all estimators on one set of rollouts')
            [CompletionResult]::new('sample', 'sample', [CompletionResultType]::ParameterValue, 'Complete a prompt and show every token''s log-probability, entropy, value and advantage')
            [CompletionResult]::new('chat', 'chat', [CompletionResultType]::ParameterValue, 'Talk to a pretrained language model as a run has trained it')
            [CompletionResult]::new('compare', 'compare', [CompletionResultType]::ParameterValue, 'Compare agents on environments over several seeds, and write tables, figures and a report')
            [CompletionResult]::new('sweep', 'sweep', [CompletionResultType]::ParameterValue, 'Vary settings of agents, and draw what they do: response curves, effects, and a report')
            [CompletionResult]::new('tune', 'tune', [CompletionResultType]::ParameterValue, 'Search for good settings of an agent, and test them with fresh seeds')
            [CompletionResult]::new('plot', 'plot', [CompletionResultType]::ParameterValue, 'Draw the learning curves or other metrics of run folders, or the figures of a comparison from its results.csv, except its sheet of episodes. Runs that differ only in their seed are drawn as one line with a band')
            [CompletionResult]::new('bandit', 'bandit', [CompletionResultType]::ParameterValue, 'Compare bandit rules on many problems: rewards, regret and figures')
            [CompletionResult]::new('reproduce', 'reproduce', [CompletionResultType]::ParameterValue, 'Redraw a published figure and say whether it holds: `gradus reproduce list` lists them')
            [CompletionResult]::new('course', 'course', [CompletionResultType]::ParameterValue, 'Make a folder with exercises that check themselves, and work in it: `gradus course new DIR`')
            [CompletionResult]::new('pages', 'pages', [CompletionResultType]::ParameterValue, 'Check the numbers quoted in Markdown pages against the tables they are from. Exit code 1 if a number differs')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check that an environment implements its interface correctly. Exit code 1 if it does not')
            [CompletionResult]::new('new', 'new', [CompletionResultType]::ParameterValue, 'Create a crate with an environment and an agent of its own, and with all of these commands')
            [CompletionResult]::new('verify', 'verify', [CompletionResultType]::ParameterValue, 'Check that the files of runs, policies and comparisons are as they were written. Exit code 1 if one is damaged')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List agents, environments and presets')
            [CompletionResult]::new('guide', 'guide', [CompletionResultType]::ParameterValue, 'Print a page of the documentation, such as metrics or ppo')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Show libtorch, CUDA, the available devices and Python, and how to fix what does not work')
            [CompletionResult]::new('bench', 'bench', [CompletionResultType]::ParameterValue, 'Measure speed')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print the help of a command')
            break
        }
        'gradus;train' {
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Total environment steps (text tasks: tokens), such as 500k or 2m [default: that of --config, or the preset''s]')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed [default: that of --config, or 1]')
            [CompletionResult]::new('--envs', '--envs', [CompletionResultType]::ParameterName, 'Number of environments in lockstep [default: that of --config, or the preset''s]')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads; does not affect the results [default: all cores]')
            [CompletionResult]::new('--device', '--device', [CompletionResultType]::ParameterName, 'Device: cpu; with the feature `tch` also torch-cpu, cuda, cuda:N or mps [default: that of --config, or cpu]')
            [CompletionResult]::new('--preset', '--preset', [CompletionResultType]::ParameterName, 'Preset; `gradus list` shows them [default: default]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'TOML file of settings, applied after the preset; it may name the agent and the environment')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'One setting, applied after the preset and the --config file; may be repeated. `gradus list --settings` explains all settings')
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Run folder [default: the first free runs/AGENT-ENV-N]')
            [CompletionResult]::new('--resume', '--resume', [CompletionResultType]::ParameterName, 'Resume the run in this folder; with --steps, train until this number of steps is done in all, even if the run is finished')
            [CompletionResult]::new('--checkpoint-every', '--checkpoint-every', [CompletionResultType]::ParameterName, 'Approximate seconds between checkpoints; at least ten times what writing one takes, unless it is 0')
            [CompletionResult]::new('--beside', '--beside', [CompletionResultType]::ParameterName, 'With --watch, train a second agent beside the first one, on the same environment and with the same seed: "AGENT KEY=VALUE ..."')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--watch', '--watch', [CompletionResultType]::ParameterName, 'Show a dashboard in the terminal: the learning curve, episodes or the values of a map, and metrics. Needs the feature `watch`')
            [CompletionResult]::new('--slow', '--slow', [CompletionResultType]::ParameterName, 'With --watch, train as slowly as eyes follow: four updates a second. Keys change the speed')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print only errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;eval' {
            [CompletionResult]::new('--episodes', '--episodes', [CompletionResultType]::ParameterName, 'Number of episodes; on text tasks, number of problems from the test split (all of its problems if it has fewer)')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed of the episodes and of sampled actions; text tasks have the same problems for every seed')
            [CompletionResult]::new('--device', '--device', [CompletionResultType]::ParameterName, 'Device, which may differ from the one used in training: cpu, torch-cpu, cuda, cuda:N or mps')
            [CompletionResult]::new('--best-of', '--best-of', [CompletionResultType]::ParameterName, 'Text tasks: sample this many completions of each problem and take the best, for every power of two up to this number, and for the number itself')
            [CompletionResult]::new('--judge', '--judge', [CompletionResultType]::ParameterName, 'Folder of the judge of --best-of: a reward model by its scores, or the policy of a run by its log-likelihoods [default: the run''s reward model, or the task''s verifier if it has none]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--sampled', '--sampled', [CompletionResultType]::ParameterName, 'Sample actions, as in training, instead of taking the most probable one')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print a JSON object with every return; for several runs, or for a folder of runs, with all evaluations and differences')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;play' {
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed of the episode')
            [CompletionResult]::new('--gif', '--gif', [CompletionResultType]::ParameterName, 'Write an animated GIF instead of playing in the terminal')
            [CompletionResult]::new('--step', '--step', [CompletionResultType]::ParameterName, 'Write only the picture after this number of steps, as a GIF of one frame')
            [CompletionResult]::new('--record', '--record', [CompletionResultType]::ParameterName, 'Also write the episode as a line of JSON, which `gradus check ENV --trace FILE` replays, to a file whose name ends in .json or .jsonl')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--sampled', '--sampled', [CompletionResultType]::ParameterName, 'Sample actions as in training, instead of taking the most probable ones')
            [CompletionResult]::new('--values', '--values', [CompletionResultType]::ParameterName, 'Show the value, the action values or the probabilities of the actions at every step, slowly. If the output is no terminal, a line for every step')
            [CompletionResult]::new('--features', '--features', [CompletionResultType]::ParameterName, 'Show beside each frame what the filters of the first convolutional layer answer to, of a policy that sees images')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;probe' {
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'A setting as KEY=VALUE, such as ppo.gamma=0.9; may be repeated')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;values' {
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Figure to write, .svg, .png or .pdf [default: values.svg and values.png in the run folder]')
            [CompletionResult]::new('--gif', '--gif', [CompletionResultType]::ParameterName, 'Instead, train the run again from its settings and write how the values grow as an animation; needs an environment with a map')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;explain' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;export' {
            [CompletionResult]::new('--hub', '--hub', [CompletionResultType]::ParameterName, 'Folder to write, which must be new or empty: README.md (the model card), the policy, its settings, its evaluation, an animation and the learning curve. Nothing is uploaded')
            [CompletionResult]::new('--transformers', '--transformers', [CompletionResultType]::ParameterName, 'Folder to write, which must be new or empty: a fine-tuned language model as a whole, with the adapters added to its matrices, as `transformers` opens it')
            [CompletionResult]::new('--episodes', '--episodes', [CompletionResultType]::ParameterName, 'Number of episodes of the evaluation; on a text task, of problems')
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Name of the model [default: AGENT-ENVIRONMENT]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;sft' {
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Maximum number of optimiser steps')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Answers per optimiser step')
            [CompletionResult]::new('--until-exact', '--until-exact', [CompletionResultType]::ParameterName, 'Stop when this fraction of the validation problems, 0 to 1, is answered exactly [default: never]')
            [CompletionResult]::new('--evaluate-every', '--evaluate-every', [CompletionResultType]::ParameterName, 'Optimiser steps between evaluations')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads; does not affect the results [default: all cores]')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'One setting of [transformer], [optimiser], [text] or [torch], device, or init; may be repeated')
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Output folder [default: the first free runs/sft-TASK-N]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print only errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;reward-model' {
            [CompletionResult]::new('--init', '--init', [CompletionResultType]::ParameterName, 'Run folder of the policy that generates the completions and initialises the reward model [default: a fresh policy]')
            [CompletionResult]::new('--pairs', '--pairs', [CompletionResultType]::ParameterName, 'Number of problems whose completions are ranked or labelled, or a file of preferences, one JSON object per line: {"prompt": "3+4=", "chosen": "7", "rejected": "8"}, or {"prompt": "3+4=", "ranking": ["7", "8", "9"]} from the best to the worst')
            [CompletionResult]::new('--judge', '--judge', [CompletionResultType]::ParameterName, 'Folder of a judge that ranks the completions instead of the task''s verifier: a reward model by its scores, or the policy of a run by its log-likelihoods')
            [CompletionResult]::new('--completions', '--completions', [CompletionResultType]::ParameterName, 'Completions per problem; for rankings, two make a pair [default: 2]')
            [CompletionResult]::new('--held-out', '--held-out', [CompletionResultType]::ParameterName, 'Number of held-out problems used to measure the model''s accuracy [default: 500]')
            [CompletionResult]::new('--labels', '--labels', [CompletionResultType]::ParameterName, 'Labels of steps: hard (1 if one of the completions sampled from the end of the step succeeds), soft (the fraction of them that succeed) or verifier (1 if the task''s reward of the step is above 0) [default: hard]')
            [CompletionResult]::new('--rollouts', '--rollouts', [CompletionResultType]::ParameterName, 'Completions sampled from the end of each step for its label [default: 8]')
            [CompletionResult]::new('--success', '--success', [CompletionResultType]::ParameterName, 'The task''s score that is 1 for a completion that succeeds [default: exact]')
            [CompletionResult]::new('--epochs', '--epochs', [CompletionResultType]::ParameterName, 'Epochs over the examples [default: 3]')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads; does not affect the results [default: all cores]')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'One setting of [transformer], [optimiser], [text] or [torch], device, or a training setting of [reward_model]; may be repeated')
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Output folder [default: the first free runs/reward-model-TASK-N]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Train a process reward model, which scores the steps of a solution instead of the whole text')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print only errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;inspect' {
            [CompletionResult]::new('--groups', '--groups', [CompletionResultType]::ParameterName, 'Number of groups; the episodes of a group have the same start')
            [CompletionResult]::new('--group-size', '--group-size', [CompletionResultType]::ParameterName, 'Episodes per group')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed of the episodes')
            [CompletionResult]::new('--show', '--show', [CompletionResultType]::ParameterName, 'Number of groups whose advantages are listed, one line per decision; of a longer episode, the first 40')
            [CompletionResult]::new('--reward-model', '--reward-model', [CompletionResultType]::ParameterName, 'Folder written by `gradus reward-model`, whose model gives the rewards [default: the run''s reward model, if it has one]')
            [CompletionResult]::new('--minibatch', '--minibatch', [CompletionResultType]::ParameterName, 'Instead, make one update from the run''s policy and show what it does to some decisions: ratio, clip, advantage [default: 10 of them]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;sample' {
            [CompletionResult]::new('--prompt', '--prompt', [CompletionResultType]::ParameterName, 'Prompt, such as `37+45=`')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'Number of completions')
            [CompletionResult]::new('--n', '--n', [CompletionResultType]::ParameterName, 'Number of completions')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Sampling temperature, by which the logits of the policy are divided, beside transformer.temperature of its training; 0: always the most probable token')
            [CompletionResult]::new('--top-k', '--top-k', [CompletionResultType]::ParameterName, 'Sample only from this many of the most probable tokens; 0: all tokens')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Sample only from the most probable tokens that together have this probability; 1: all tokens')
            [CompletionResult]::new('--min-p', '--min-p', [CompletionResultType]::ParameterName, 'Sample only from tokens with at least this fraction of the highest probability; 0: all tokens')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed of the completions')
            [CompletionResult]::new('--reward-model', '--reward-model', [CompletionResultType]::ParameterName, 'Folder written by `gradus reward-model`, whose model gives the rewards [default: the run''s reward model, if it has one]')
            [CompletionResult]::new('--color-by', '--color-by', [CompletionResultType]::ParameterName, 'What colours the tokens: the advantage (green: above 0; red: below 0; if there is none, yellow and magenta show improbable tokens), the entropy, or the KL divergence from the policy at the beginning of the training (both darker for larger numbers)')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--greedy', '--greedy', [CompletionResultType]::ParameterName, 'Always take the most probable token')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;chat' {
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Sampling temperature, by which the logits of the policy are divided, beside transformer.temperature of its training; 0: always the most probable token')
            [CompletionResult]::new('--top-k', '--top-k', [CompletionResultType]::ParameterName, 'Sample only from this many of the most probable tokens; 0: all tokens')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Sample only from the most probable tokens that together have this probability; 1: all tokens')
            [CompletionResult]::new('--min-p', '--min-p', [CompletionResultType]::ParameterName, 'Sample only from tokens with at least this fraction of the highest probability; 0: all tokens')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed of the answers')
            [CompletionResult]::new('--max-new-tokens', '--max-new-tokens', [CompletionResultType]::ParameterName, 'Most tokens of an answer')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'Most tokens of the conversation, which the model''s own context limits, too')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--greedy', '--greedy', [CompletionResultType]::ParameterName, 'Always take the most probable token')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;compare' {
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Results folder [default: runs/NAME, where NAME is the file''s name without its extension]')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'Number of simultaneous runs, each on one thread; does not affect the results [default: one per core]')
            [CompletionResult]::new('--task', '--task', [CompletionResultType]::ParameterName, 'Make only these runs, by their numbers in the list, such as 7 or 1-5,9, and write no other outputs')
            [CompletionResult]::new('--shard', '--shard', [CompletionResultType]::ParameterName, 'Make only part I of N of the runs, from 1, and write no other outputs')
            [CompletionResult]::new('--merge', '--merge', [CompletionResultType]::ParameterName, 'First copy the runs from the results folders of other machines; train nothing')
            [CompletionResult]::new('--emit', '--emit', [CompletionResultType]::ParameterName, 'Instead, print a script that makes the runs on a cluster')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print only errors')
            [CompletionResult]::new('--list', '--list', [CompletionResultType]::ParameterName, 'Instead, print a table of all runs with their numbers and their keys, and whether they are made')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gradus;sweep' {
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Results folder [default: runs/NAME, where NAME is the file''s name without its extension]')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'Number of simultaneous runs, each on one thread; does not affect the results [default: one per core]')
            [CompletionResult]::new('--task', '--task', [CompletionResultType]::ParameterName, 'Make only these runs, by their numbers in the list, such as 7 or 1-5,9, and write no other outputs')
            [CompletionResult]::new('--shard', '--shard', [CompletionResultType]::ParameterName, 'Make only part I of N of the runs, from 1, and write no other outputs')
            [CompletionResult]::new('--merge', '--merge', [CompletionResultType]::ParameterName, 'First copy the runs from the results folders of other machines; train nothing')
            [CompletionResult]::new('--emit', '--emit', [CompletionResultType]::ParameterName, 'Instead, print a script that makes the runs on a cluster')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print only errors')
            [CompletionResult]::new('--list', '--list', [CompletionResultType]::ParameterName, 'Instead, print a table of all runs with their numbers and their keys, and whether they are made')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gradus;tune' {
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Results folder [default: runs/NAME, where NAME is the file''s name without its extension]')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'Number of simultaneous runs, each on one thread; does not affect the results [default: one per core]')
            [CompletionResult]::new('--emit', '--emit', [CompletionResultType]::ParameterName, 'Instead, print a script for a cluster, whose tasks share the runs through the results folder')
            [CompletionResult]::new('--tasks', '--tasks', [CompletionResultType]::ParameterName, 'Number of tasks of that script')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Print only errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gradus;plot' {
            [CompletionResult]::new('--metric', '--metric', [CompletionResultType]::ParameterName, 'Column of metrics.csv to draw instead of the return, such as train/approx_kl; may be repeated, for one panel per column')
            [CompletionResult]::new('--label', '--label', [CompletionResultType]::ParameterName, 'Name in the legend; repeated for each line, in the order of the folders [default: the folders'' names]')
            [CompletionResult]::new('--window', '--window', [CompletionResultType]::ParameterName, 'Length of the trailing mean, in episodes or, with --metric, in updates [default: 100 episodes, or a fiftieth of the updates]')
            [CompletionResult]::new('--x', '--x', [CompletionResultType]::ParameterName, 'The x axis: environment steps, seconds of training, or steps on a logarithmic axis')
            [CompletionResult]::new('--y', '--y', [CompletionResultType]::ParameterName, 'The ends of the y axis, such as -100,0 [default: those of the lines, without extremes]')
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Figure to write, .svg, .png or .pdf [default: curve.svg and curve.png, or with --metric metrics.svg and metrics.png; these are in the run folder if only one run folder is given, otherwise in the current folder]. For a table: folder of the figures [default: the table''s folder]')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Formats of the figures, such as pdf or svg,pdf [default: svg,png, or the ending of --out]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--mean', '--mean', [CompletionResultType]::ParameterName, 'Show the mean over seeds instead of the interquartile mean')
            [CompletionResult]::new('--each', '--each', [CompletionResultType]::ParameterName, 'Draw one line per run instead of a band over seeds')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bandit' {
            [CompletionResult]::new('--problems', '--problems', [CompletionResultType]::ParameterName, 'Kind of the problems')
            [CompletionResult]::new('--count', '--count', [CompletionResultType]::ParameterName, 'Number of problems')
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Pulls per problem')
            [CompletionResult]::new('--arms', '--arms', [CompletionResultType]::ParameterName, 'Number of arms [default: 10; contextual: 5]')
            [CompletionResult]::new('--values', '--values', [CompletionResultType]::ParameterName, 'Values of the arms in all problems, such as 0.9,0.8,0.8; the regret is then compared with the bound of Lai and Robbins')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Random seed')
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Folder for curves.csv, summary.csv and the figure')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gradus;reproduce' {
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Folder for the results [default: runs/reproductions/NAME]')
            [CompletionResult]::new('--merge', '--merge', [CompletionResultType]::ParameterName, 'First copy the runs from the results folders of other machines; train nothing')
            [CompletionResult]::new('--task', '--task', [CompletionResultType]::ParameterName, 'With `all`: make only these figures, by their numbers in the list, such as 7 or 1-5,9')
            [CompletionResult]::new('--shard', '--shard', [CompletionResultType]::ParameterName, 'With `all`: make only part I of N of the figures, from 1')
            [CompletionResult]::new('--emit', '--emit', [CompletionResultType]::ParameterName, 'With `all`: instead, print a script that makes the figures on a cluster')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--quick', '--quick', [CompletionResultType]::ParameterName, 'Only try it out: fewer runs, and a verdict that means nothing')
            [CompletionResult]::new('--list', '--list', [CompletionResultType]::ParameterName, 'With `all`: instead, print a table of all figures with their numbers, and whether they are made')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'gradus;course' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('new', 'new', [CompletionResultType]::ParameterValue, 'Make a folder with the exercises, which must be new or empty')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the exercises, and which of them are right')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check the functions of a lesson, an exercise or a homework. Exit code 1 if one is not right')
            [CompletionResult]::new('hint', 'hint', [CompletionResultType]::ParameterValue, 'Give a hint. Each call says more')
            [CompletionResult]::new('solution', 'solution', [CompletionResultType]::ParameterValue, 'Show our answer to an exercise, once yours is right')
            [CompletionResult]::new('reset', 'reset', [CompletionResultType]::ParameterValue, 'Put the template of an exercise back')
            [CompletionResult]::new('grade', 'grade', [CompletionResultType]::ParameterValue, 'Grade the submissions in a folder: NAME.rs or NAME/lesson_1.rs for each student. Nothing else of a student is used: no manifest, no other file')
            [CompletionResult]::new('bundle', 'bundle', [CompletionResultType]::ParameterValue, 'Write the files of an autograder for Gradescope: zip them, and upload the archive')
            [CompletionResult]::new('bug', 'bug', [CompletionResultType]::ParameterValue, 'Look for a bug in a whole agent: opens it, gives hints, and checks what you changed')
            [CompletionResult]::new('watch', 'watch', [CompletionResultType]::ParameterValue, 'Check again whenever a file is saved')
            break
        }
        'gradus;course;new' {
            [CompletionResult]::new('--path', '--path', [CompletionResultType]::ParameterName, 'Folder of Gradus''s source [default: the source that this program was built from]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;list' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;check' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;hint' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;solution' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;reset' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;grade' {
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Write everything that was found')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Write a row for each student, with a column for each exercise')
            [CompletionResult]::new('--gradescope', '--gradescope', [CompletionResultType]::ParameterName, 'Write DIR/NAME/results.json, as Gradescope reads it')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Seed of the inputs [default: 1]; each student has other numbers')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;bundle' {
            [CompletionResult]::new('--repository', '--repository', [CompletionResultType]::ParameterName, 'Where the autograder clones Gradus from')
            [CompletionResult]::new('--commit', '--commit', [CompletionResultType]::ParameterName, 'The commit that grades; without it, the newest one when the autograder''s image is built')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Seed of the inputs, from which and from the student''s number those of each student are made')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;bug' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--hint', '--hint', [CompletionResultType]::ParameterName, 'Give a hint; each call says more')
            [CompletionResult]::new('--check', '--check', [CompletionResultType]::ParameterName, 'Check whether the bug is gone; exit code 1 if it is not')
            [CompletionResult]::new('--reset', '--reset', [CompletionResultType]::ParameterName, 'Put the file with the bug back')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;course;watch' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;pages' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--write', '--write', [CompletionResultType]::ParameterName, 'Replace the numbers that differ by the numbers in the tables, and move queries from the page into the file beside it')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;check' {
            [CompletionResult]::new('--trace', '--trace', [CompletionResultType]::ParameterName, 'Instead, replay the episodes recorded in this file and compare the results with the recorded ones. The file has one JSON object per line, from `gradus play --record` or from Gymnasium')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;new' {
            [CompletionResult]::new('--name', '--name', [CompletionResultType]::ParameterName, 'Name of the crate [default: the folder''s name]')
            [CompletionResult]::new('--path', '--path', [CompletionResultType]::ParameterName, 'Folder of Gradus''s source, for the dependency [default: the source that this program was built from]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;verify' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Also list the files that are as they were written')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;list' {
            [CompletionResult]::new('--settings', '--settings', [CompletionResultType]::ParameterName, 'List the key, default and meaning of every setting instead, or of the settings of one agent')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('--presets', '--presets', [CompletionResultType]::ParameterName, 'List the presets and where they are from instead')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;guide' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;doctor' {
            [CompletionResult]::new('--device', '--device', [CompletionResultType]::ParameterName, 'Fail with exit code 2 unless this device works: cpu, torch-cpu, cuda, cuda:N or mps')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('solve', 'solve', [CompletionResultType]::ParameterValue, 'Time that PPO takes to solve CartPole')
            [CompletionResult]::new('roofline', 'roofline', [CompletionResultType]::ParameterValue, 'Training speed of an agent, relative to the machine''s peak multiplication rate')
            [CompletionResult]::new('train', 'train', [CompletionResultType]::ParameterValue, 'Environment steps per second of a training, including rollouts and updates')
            [CompletionResult]::new('growth', 'growth', [CompletionResultType]::ParameterValue, 'Time per step and memory use during one long run, written as a table and a figure')
            [CompletionResult]::new('seeds', 'seeds', [CompletionResultType]::ParameterValue, 'Steps per second of several simultaneous single-threaded trainings, both in one process and with one process per training')
            [CompletionResult]::new('busy', 'busy', [CompletionResultType]::ParameterValue, 'Steps per second of trainings on all cores, relative to one thread, on a busy machine: next to a process that uses a core, and with two and four trainings at once')
            [CompletionResult]::new('text', 'text', [CompletionResultType]::ParameterValue, 'Completion tokens per second of GRPO with a transformer, generation and update together')
            [CompletionResult]::new('device', 'device', [CompletionResultType]::ParameterValue, 'Steps per second of PPO on CartPole or GRPO on a text task, including rollouts and updates. The policy is on one device, and the environments are on the same device or on the host')
            [CompletionResult]::new('env', 'env', [CompletionResultType]::ParameterValue, 'Steps per second of an environment with random actions')
            [CompletionResult]::new('product', 'product', [CompletionResultType]::ParameterValue, 'Share of one core''s peak multiplication rate that matrix products reach, by shape: layers of perceptrons, and their gradients')
            [CompletionResult]::new('cartpole', 'cartpole', [CompletionResultType]::ParameterValue, 'Same as `env cartpole`')
            break
        }
        'gradus;bench;solve' {
            [CompletionResult]::new('--seeds', '--seeds', [CompletionResultType]::ParameterName, 'Number of seeds N; the seeds are 1 to N')
            [CompletionResult]::new('--preset', '--preset', [CompletionResultType]::ParameterName, 'Preset [default: default]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;roofline' {
            [CompletionResult]::new('--agent', '--agent', [CompletionResultType]::ParameterName, 'Agent: ppo, dqn, ddpg, td3 or sac')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Environment [default: the first that the agent has presets for]')
            [CompletionResult]::new('--preset', '--preset', [CompletionResultType]::ParameterName, 'Preset')
            [CompletionResult]::new('--envs', '--envs', [CompletionResultType]::ParameterName, 'Number of environments in lockstep [default: the preset''s]; the minibatch size changes in proportion, which keeps the number of minibatches the same')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'One setting, applied last, such as network.hidden=[256]; may be repeated')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads [default: all cores]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;train' {
            [CompletionResult]::new('--preset', '--preset', [CompletionResultType]::ParameterName, 'Preset [default: default]')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'One setting, applied after the preset, such as device=cuda; may be repeated')
            [CompletionResult]::new('--rounds', '--rounds', [CompletionResultType]::ParameterName, 'Number of measurements, half a second each')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads [default: all cores]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;growth' {
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Environment steps of the run, at least 10k')
            [CompletionResult]::new('--agent', '--agent', [CompletionResultType]::ParameterName, 'Agent')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Environment [default: the first that the agent has presets for]')
            [CompletionResult]::new('--preset', '--preset', [CompletionResultType]::ParameterName, 'Preset')
            [CompletionResult]::new('--set', '--set', [CompletionResultType]::ParameterName, 'One setting, applied after the preset, such as dqn.buffer_size=1000000; may be repeated')
            [CompletionResult]::new('--out', '--out', [CompletionResultType]::ParameterName, 'Folder for growth.csv, growth.svg and growth.png; also holds the run folder until the run ends')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads [default: all cores]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;seeds' {
            [CompletionResult]::new('--seeds', '--seeds', [CompletionResultType]::ParameterName, 'Number of simultaneous trainings [default: one per core]')
            [CompletionResult]::new('--preset', '--preset', [CompletionResultType]::ParameterName, 'Preset')
            [CompletionResult]::new('--rounds', '--rounds', [CompletionResultType]::ParameterName, 'Number of measurements in one process, and as many in several processes; each takes half a second')
            [CompletionResult]::new('--serve', '--serve', [CompletionResultType]::ParameterName, 'Run as one of the measured processes, with this seed')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Threads of the measured process')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;busy' {
            [CompletionResult]::new('--preset', '--preset', [CompletionResultType]::ParameterName, 'Preset')
            [CompletionResult]::new('--rounds', '--rounds', [CompletionResultType]::ParameterName, 'Number of measurements of each situation with all cores, and as many with one thread; each takes half a second')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;text' {
            [CompletionResult]::new('--layers', '--layers', [CompletionResultType]::ParameterName, 'Number of transformer layers')
            [CompletionResult]::new('--width', '--width', [CompletionResultType]::ParameterName, 'Embedding width')
            [CompletionResult]::new('--heads', '--heads', [CompletionResultType]::ParameterName, 'Attention heads per layer')
            [CompletionResult]::new('--feed-forward-width', '--feed-forward-width', [CompletionResultType]::ParameterName, 'Hidden width of the feed-forward layers')
            [CompletionResult]::new('--prompts', '--prompts', [CompletionResultType]::ParameterName, 'Prompts per update')
            [CompletionResult]::new('--group', '--group', [CompletionResultType]::ParameterName, 'Completions per prompt')
            [CompletionResult]::new('--prompt-tokens', '--prompt-tokens', [CompletionResultType]::ParameterName, 'Tokens per prompt')
            [CompletionResult]::new('--new-tokens', '--new-tokens', [CompletionResultType]::ParameterName, 'Tokens per completion')
            [CompletionResult]::new('--device', '--device', [CompletionResultType]::ParameterName, 'Device: cpu, torch-cpu, cuda, cuda:N or mps')
            [CompletionResult]::new('--precision', '--precision', [CompletionResultType]::ParameterName, 'Precision of libtorch''s matrix products: f32, tf32 or bf16')
            [CompletionResult]::new('--micro-batch', '--micro-batch', [CompletionResultType]::ParameterName, 'Tokens per micro-batch on libtorch; 0: all tokens of a minibatch')
            [CompletionResult]::new('--updates', '--updates', [CompletionResultType]::ParameterName, 'Number of measured updates')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads [default: all cores]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;device' {
            [CompletionResult]::new('--device', '--device', [CompletionResultType]::ParameterName, 'Device: cpu, torch-cpu, cuda, cuda:N or mps')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Environment: cartpole, or a text task such as target-sum')
            [CompletionResult]::new('--envs', '--envs', [CompletionResultType]::ParameterName, 'Number of environments in lockstep')
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Steps of each environment in a rollout; ignored on text tasks')
            [CompletionResult]::new('--epochs', '--epochs', [CompletionResultType]::ParameterName, 'Epochs per rollout')
            [CompletionResult]::new('--minibatches', '--minibatches', [CompletionResultType]::ParameterName, 'Minibatches per epoch')
            [CompletionResult]::new('--worlds', '--worlds', [CompletionResultType]::ParameterName, 'Where the environments run: device, host or auto')
            [CompletionResult]::new('--updates', '--updates', [CompletionResultType]::ParameterName, 'Number of measured updates')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads [default: all cores]')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;env' {
            [CompletionResult]::new('--envs', '--envs', [CompletionResultType]::ParameterName, 'Number of environments in lockstep')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Number of threads, each with an equal share of the environments')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;product' {
            [CompletionResult]::new('--rounds', '--rounds', [CompletionResultType]::ParameterName, 'Number of measurements of each shape, two milliseconds each')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;bench;cartpole' {
            [CompletionResult]::new('--envs', '--envs', [CompletionResultType]::ParameterName, 'Number of environments in lockstep')
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'gradus;help' {
            [CompletionResult]::new('--python', '--python', [CompletionResultType]::ParameterName, 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment''s, or python3]')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
