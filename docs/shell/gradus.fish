# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_gradus_global_optspecs
    string join \n python= h/help V/version
end

function __fish_gradus_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_gradus_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_gradus_using_subcommand
    set -l cmd (__fish_gradus_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c gradus -n "__fish_gradus_needs_command" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_needs_command" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_needs_command" -s V -l version -d 'Print version'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "train" -d 'Train an agent and write a run folder'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "eval" -d 'Evaluate trained policies'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "play" -d 'Play an episode in the terminal, or write it as an animated GIF'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "probe" -d 'Try an agent in probe worlds, the smallest ones there are, and say which properties it has. Exit code 1 if one is missing'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "values" -d 'Draw the values and the greedy actions of a policy, in the terminal and as a figure'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "explain" -d 'Say in words what looks sick in a run, and which page explains it'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "export" -d 'Write a policy with a model card, its evaluation and an animation, to be published'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "sft" -d 'Supervised warm start: train a fresh policy on the known answers of a text task'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "reward-model" -d 'Train a reward model of a text task from preferences'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "inspect" -d 'Compare the advantages and gradients of all estimators on one set of rollouts'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "sample" -d 'Complete a prompt and show every token\'s log-probability, entropy, value and advantage'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "chat" -d 'Talk to a pretrained language model as a run has trained it'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "compare" -d 'Compare agents on environments over several seeds, and write tables, figures and a report'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "sweep" -d 'Vary settings of agents, and draw what they do: response curves, effects, and a report'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "tune" -d 'Search for good settings of an agent, and test them with fresh seeds'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "plot" -d 'Draw the learning curves or other metrics of run folders, or the figures of a comparison from its results.csv, except its sheet of episodes. Runs that differ only in their seed are drawn as one line with a band'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "bandit" -d 'Compare bandit rules on many problems: rewards, regret and figures'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "reproduce" -d 'Redraw a published figure and say whether it holds: `gradus reproduce list` lists them'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "course" -d 'Make a folder with exercises that check themselves, and work in it: `gradus course new DIR`'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "pages" -d 'Check the numbers quoted in Markdown pages against the tables they are from. Exit code 1 if a number differs'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "check" -d 'Check that an environment implements its interface correctly. Exit code 1 if it does not'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "new" -d 'Create a crate with an environment and an agent of its own, and with all of these commands'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "verify" -d 'Check that the files of runs, policies and comparisons are as they were written. Exit code 1 if one is damaged'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "list" -d 'List agents, environments and presets'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "guide" -d 'Print a page of the documentation, such as metrics or ppo'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "doctor" -d 'Show libtorch, CUDA, the available devices and Python, and how to fix what does not work'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "bench" -d 'Measure speed'
complete -c gradus -n "__fish_gradus_needs_command" -f -a "help" -d 'Print the help of a command'
complete -c gradus -n "__fish_gradus_using_subcommand train" -l steps -d 'Total environment steps (text tasks: tokens), such as 500k or 2m [default: that of --config, or the preset\'s]' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l seed -d 'Random seed [default: that of --config, or 1]' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l envs -d 'Number of environments in lockstep [default: that of --config, or the preset\'s]' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l threads -d 'Number of threads; does not affect the results [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l device -d 'Device: cpu; with the feature `tch` also torch-cpu, cuda, cuda:N or mps [default: that of --config, or cpu]' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l preset -d 'Preset; `gradus list` shows them [default: default]' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l config -d 'TOML file of settings, applied after the preset; it may name the agent and the environment' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand train" -l set -d 'One setting, applied after the preset and the --config file; may be repeated. `gradus list --settings` explains all settings' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l out -d 'Run folder [default: the first free runs/AGENT-ENV-N]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand train" -l resume -d 'Resume the run in this folder; with --steps, train until this number of steps is done in all, even if the run is finished' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand train" -l checkpoint-every -d 'Approximate seconds between checkpoints; at least ten times what writing one takes, unless it is 0' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l beside -d 'With --watch, train a second agent beside the first one, on the same environment and with the same seed: "AGENT KEY=VALUE ..."' -r
complete -c gradus -n "__fish_gradus_using_subcommand train" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand train" -l watch -d 'Show a dashboard in the terminal: the learning curve, episodes or the values of a map, and metrics. Needs the feature `watch`'
complete -c gradus -n "__fish_gradus_using_subcommand train" -l slow -d 'With --watch, train as slowly as eyes follow: four updates a second. Keys change the speed'
complete -c gradus -n "__fish_gradus_using_subcommand train" -l quiet -d 'Print only errors'
complete -c gradus -n "__fish_gradus_using_subcommand train" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l episodes -d 'Number of episodes; on text tasks, number of problems from the test split (all of its problems if it has fewer)' -r
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l seed -d 'Random seed of the episodes and of sampled actions; text tasks have the same problems for every seed' -r
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l device -d 'Device, which may differ from the one used in training: cpu, torch-cpu, cuda, cuda:N or mps' -r
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l best-of -d 'Text tasks: sample this many completions of each problem and take the best, for every power of two up to this number, and for the number itself' -r
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l judge -d 'Folder of the judge of --best-of: a reward model by its scores, or the policy of a run by its log-likelihoods [default: the run\'s reward model, or the task\'s verifier if it has none]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l sampled -d 'Sample actions, as in training, instead of taking the most probable one'
complete -c gradus -n "__fish_gradus_using_subcommand eval" -l json -d 'Print a JSON object with every return; for several runs, or for a folder of runs, with all evaluations and differences'
complete -c gradus -n "__fish_gradus_using_subcommand eval" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand play" -l seed -d 'Random seed of the episode' -r
complete -c gradus -n "__fish_gradus_using_subcommand play" -l gif -d 'Write an animated GIF instead of playing in the terminal' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand play" -l step -d 'Write only the picture after this number of steps, as a GIF of one frame' -r
complete -c gradus -n "__fish_gradus_using_subcommand play" -l record -d 'Also write the episode as a line of JSON, which `gradus check ENV --trace FILE` replays, to a file whose name ends in .json or .jsonl' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand play" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand play" -l sampled -d 'Sample actions as in training, instead of taking the most probable ones'
complete -c gradus -n "__fish_gradus_using_subcommand play" -l values -d 'Show the value, the action values or the probabilities of the actions at every step, slowly. If the output is no terminal, a line for every step'
complete -c gradus -n "__fish_gradus_using_subcommand play" -l features -d 'Show beside each frame what the filters of the first convolutional layer answer to, of a policy that sees images'
complete -c gradus -n "__fish_gradus_using_subcommand play" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand probe" -l seed -d 'Random seed' -r
complete -c gradus -n "__fish_gradus_using_subcommand probe" -l set -d 'A setting as KEY=VALUE, such as ppo.gamma=0.9; may be repeated' -r
complete -c gradus -n "__fish_gradus_using_subcommand probe" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand probe" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand values" -l out -d 'Figure to write, .svg, .png or .pdf [default: values.svg and values.png in the run folder]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand values" -l gif -d 'Instead, train the run again from its settings and write how the values grow as an animation; needs an environment with a map' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand values" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand values" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand explain" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand explain" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand export" -l hub -d 'Folder to write, which must be new or empty: README.md (the model card), the policy, its settings, its evaluation, an animation and the learning curve. Nothing is uploaded' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand export" -l transformers -d 'Folder to write, which must be new or empty: a fine-tuned language model as a whole, with the adapters added to its matrices, as `transformers` opens it' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand export" -l episodes -d 'Number of episodes of the evaluation; on a text task, of problems' -r
complete -c gradus -n "__fish_gradus_using_subcommand export" -l name -d 'Name of the model [default: AGENT-ENVIRONMENT]' -r
complete -c gradus -n "__fish_gradus_using_subcommand export" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand export" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l steps -d 'Maximum number of optimiser steps' -r
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l batch -d 'Answers per optimiser step' -r
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l until-exact -d 'Stop when this fraction of the validation problems, 0 to 1, is answered exactly [default: never]' -r
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l evaluate-every -d 'Optimiser steps between evaluations' -r
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l seed -d 'Random seed' -r
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l threads -d 'Number of threads; does not affect the results [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l set -d 'One setting of [transformer], [optimiser], [text] or [torch], device, or init; may be repeated' -r
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l out -d 'Output folder [default: the first free runs/sft-TASK-N]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand sft" -l quiet -d 'Print only errors'
complete -c gradus -n "__fish_gradus_using_subcommand sft" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l init -d 'Run folder of the policy that generates the completions and initialises the reward model [default: a fresh policy]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l pairs -d 'Number of problems whose completions are ranked or labelled, or a file of preferences, one JSON object per line: {"prompt": "3+4=", "chosen": "7", "rejected": "8"}, or {"prompt": "3+4=", "ranking": ["7", "8", "9"]} from the best to the worst' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l judge -d 'Folder of a judge that ranks the completions instead of the task\'s verifier: a reward model by its scores, or the policy of a run by its log-likelihoods' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l completions -d 'Completions per problem; for rankings, two make a pair [default: 2]' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l held-out -d 'Number of held-out problems used to measure the model\'s accuracy [default: 500]' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l labels -d 'Labels of steps: hard (1 if one of the completions sampled from the end of the step succeeds), soft (the fraction of them that succeed) or verifier (1 if the task\'s reward of the step is above 0) [default: hard]' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l rollouts -d 'Completions sampled from the end of each step for its label [default: 8]' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l success -d 'The task\'s score that is 1 for a completion that succeeds [default: exact]' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l epochs -d 'Epochs over the examples [default: 3]' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l seed -d 'Random seed' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l threads -d 'Number of threads; does not affect the results [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l set -d 'One setting of [transformer], [optimiser], [text] or [torch], device, or a training setting of [reward_model]; may be repeated' -r
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l out -d 'Output folder [default: the first free runs/reward-model-TASK-N]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l process -d 'Train a process reward model, which scores the steps of a solution instead of the whole text'
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -l quiet -d 'Print only errors'
complete -c gradus -n "__fish_gradus_using_subcommand reward-model" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -l groups -d 'Number of groups; the episodes of a group have the same start' -r
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -l group-size -d 'Episodes per group' -r
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -l seed -d 'Random seed of the episodes' -r
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -l show -d 'Number of groups whose advantages are listed, one line per decision; of a longer episode, the first 40' -r
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -l reward-model -d 'Folder written by `gradus reward-model`, whose model gives the rewards [default: the run\'s reward model, if it has one]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -l minibatch -d 'Instead, make one update from the run\'s policy and show what it does to some decisions: ratio, clip, advantage [default: 10 of them]' -r
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand inspect" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l prompt -d 'Prompt, such as `37+45=`' -r
complete -c gradus -n "__fish_gradus_using_subcommand sample" -s n -l n -d 'Number of completions' -r
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l temperature -d 'Sampling temperature, by which the logits of the policy are divided, beside transformer.temperature of its training; 0: always the most probable token' -r
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l top-k -d 'Sample only from this many of the most probable tokens; 0: all tokens' -r
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l top-p -d 'Sample only from the most probable tokens that together have this probability; 1: all tokens' -r
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l min-p -d 'Sample only from tokens with at least this fraction of the highest probability; 0: all tokens' -r
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l seed -d 'Random seed of the completions' -r
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l reward-model -d 'Folder written by `gradus reward-model`, whose model gives the rewards [default: the run\'s reward model, if it has one]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l color-by -d 'What colours the tokens: the advantage (green: above 0; red: below 0; if there is none, yellow and magenta show improbable tokens), the entropy, or the KL divergence from the policy at the beginning of the training (both darker for larger numbers)' -r -f -a "advantage\t''
entropy\t''
kl\t''"
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand sample" -l greedy -d 'Always take the most probable token'
complete -c gradus -n "__fish_gradus_using_subcommand sample" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l temperature -d 'Sampling temperature, by which the logits of the policy are divided, beside transformer.temperature of its training; 0: always the most probable token' -r
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l top-k -d 'Sample only from this many of the most probable tokens; 0: all tokens' -r
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l top-p -d 'Sample only from the most probable tokens that together have this probability; 1: all tokens' -r
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l min-p -d 'Sample only from tokens with at least this fraction of the highest probability; 0: all tokens' -r
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l seed -d 'Random seed of the answers' -r
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l max-new-tokens -d 'Most tokens of an answer' -r
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l context -d 'Most tokens of the conversation, which the model\'s own context limits, too' -r
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand chat" -l greedy -d 'Always take the most probable token'
complete -c gradus -n "__fish_gradus_using_subcommand chat" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l out -d 'Results folder [default: runs/NAME, where NAME is the file\'s name without its extension]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l jobs -d 'Number of simultaneous runs, each on one thread; does not affect the results [default: one per core]' -r
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l task -d 'Make only these runs, by their numbers in the list, such as 7 or 1-5,9, and write no other outputs' -r
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l shard -d 'Make only part I of N of the runs, from 1, and write no other outputs' -r
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l merge -d 'First copy the runs from the results folders of other machines; train nothing' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l emit -d 'Instead, print a script that makes the runs on a cluster' -r -f -a "slurm\t'SLURM: an array job, for sbatch'
hq\t'HyperQueue: a script that submits a task array'
k8s\t'Kubernetes: an indexed job, for kubectl apply'"
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l quiet -d 'Print only errors'
complete -c gradus -n "__fish_gradus_using_subcommand compare" -l list -d 'Instead, print a table of all runs with their numbers and their keys, and whether they are made'
complete -c gradus -n "__fish_gradus_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l out -d 'Results folder [default: runs/NAME, where NAME is the file\'s name without its extension]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l jobs -d 'Number of simultaneous runs, each on one thread; does not affect the results [default: one per core]' -r
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l task -d 'Make only these runs, by their numbers in the list, such as 7 or 1-5,9, and write no other outputs' -r
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l shard -d 'Make only part I of N of the runs, from 1, and write no other outputs' -r
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l merge -d 'First copy the runs from the results folders of other machines; train nothing' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l emit -d 'Instead, print a script that makes the runs on a cluster' -r -f -a "slurm\t'SLURM: an array job, for sbatch'
hq\t'HyperQueue: a script that submits a task array'
k8s\t'Kubernetes: an indexed job, for kubectl apply'"
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l quiet -d 'Print only errors'
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -l list -d 'Instead, print a table of all runs with their numbers and their keys, and whether they are made'
complete -c gradus -n "__fish_gradus_using_subcommand sweep" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gradus -n "__fish_gradus_using_subcommand tune" -l out -d 'Results folder [default: runs/NAME, where NAME is the file\'s name without its extension]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand tune" -l jobs -d 'Number of simultaneous runs, each on one thread; does not affect the results [default: one per core]' -r
complete -c gradus -n "__fish_gradus_using_subcommand tune" -l emit -d 'Instead, print a script for a cluster, whose tasks share the runs through the results folder' -r -f -a "slurm\t'SLURM: an array job, for sbatch'
hq\t'HyperQueue: a script that submits a task array'
k8s\t'Kubernetes: an indexed job, for kubectl apply'"
complete -c gradus -n "__fish_gradus_using_subcommand tune" -l tasks -d 'Number of tasks of that script' -r
complete -c gradus -n "__fish_gradus_using_subcommand tune" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand tune" -l quiet -d 'Print only errors'
complete -c gradus -n "__fish_gradus_using_subcommand tune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l metric -d 'Column of metrics.csv to draw instead of the return, such as train/approx_kl; may be repeated, for one panel per column' -r
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l label -d 'Name in the legend; repeated for each line, in the order of the folders [default: the folders\' names]' -r
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l window -d 'Length of the trailing mean, in episodes or, with --metric, in updates [default: 100 episodes, or a fiftieth of the updates]' -r
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l x -d 'The x axis: environment steps, seconds of training, or steps on a logarithmic axis' -r -f -a "steps\t''
time\t''
log\t''"
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l y -d 'The ends of the y axis, such as -100,0 [default: those of the lines, without extremes]' -r
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l out -d 'Figure to write, .svg, .png or .pdf [default: curve.svg and curve.png, or with --metric metrics.svg and metrics.png; these are in the run folder if only one run folder is given, otherwise in the current folder]. For a table: folder of the figures [default: the table\'s folder]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l format -d 'Formats of the figures, such as pdf or svg,pdf [default: svg,png, or the ending of --out]' -r
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l mean -d 'Show the mean over seeds instead of the interquartile mean'
complete -c gradus -n "__fish_gradus_using_subcommand plot" -l each -d 'Draw one line per run instead of a band over seeds'
complete -c gradus -n "__fish_gradus_using_subcommand plot" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l problems -d 'Kind of the problems' -r -f -a "gaussian\t'Normal rewards with variance 1, and normal values: Sutton and Barto\'s testbed'
bernoulli\t'Rewards of 0 or 1'
drifting\t'Normal rewards, and values that begin at 0 and drift by a standard deviation of 0.01: exercise 2.5'
contextual\t'Values that are linear functions of four observed numbers'"
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l count -d 'Number of problems' -r
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l steps -d 'Pulls per problem' -r
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l arms -d 'Number of arms [default: 10; contextual: 5]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l values -d 'Values of the arms in all problems, such as 0.9,0.8,0.8; the regret is then compared with the bound of Lai and Robbins' -r
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l seed -d 'Random seed' -r
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l out -d 'Folder for curves.csv, summary.csv and the figure' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bandit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l out -d 'Folder for the results [default: runs/reproductions/NAME]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l merge -d 'First copy the runs from the results folders of other machines; train nothing' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l task -d 'With `all`: make only these figures, by their numbers in the list, such as 7 or 1-5,9' -r
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l shard -d 'With `all`: make only part I of N of the figures, from 1' -r
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l emit -d 'With `all`: instead, print a script that makes the figures on a cluster' -r -f -a "slurm\t'SLURM: an array job, for sbatch'
hq\t'HyperQueue: a script that submits a task array'
k8s\t'Kubernetes: an indexed job, for kubectl apply'"
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l quick -d 'Only try it out: fewer runs, and a verdict that means nothing'
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -l list -d 'With `all`: instead, print a table of all figures with their numbers, and whether they are made'
complete -c gradus -n "__fish_gradus_using_subcommand reproduce" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "new" -d 'Make a folder with the exercises, which must be new or empty'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "list" -d 'List the exercises, and which of them are right'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "check" -d 'Check the functions of a lesson, an exercise or a homework. Exit code 1 if one is not right'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "hint" -d 'Give a hint. Each call says more'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "solution" -d 'Show our answer to an exercise, once yours is right'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "reset" -d 'Put the template of an exercise back'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "grade" -d 'Grade the submissions in a folder: NAME.rs or NAME/lesson_1.rs for each student. Nothing else of a student is used: no manifest, no other file'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "bundle" -d 'Write the files of an autograder for Gradescope: zip them, and upload the archive'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "bug" -d 'Look for a bug in a whole agent: opens it, gives hints, and checks what you changed'
complete -c gradus -n "__fish_gradus_using_subcommand course; and not __fish_seen_subcommand_from new list check hint solution reset grade bundle bug watch" -f -a "watch" -d 'Check again whenever a file is saved'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from new" -l path -d 'Folder of Gradus\'s source [default: the source that this program was built from]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from new" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from new" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from list" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from check" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from hint" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from hint" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from solution" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from solution" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from reset" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from reset" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from grade" -l json -d 'Write everything that was found' -r
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from grade" -l csv -d 'Write a row for each student, with a column for each exercise' -r
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from grade" -l gradescope -d 'Write DIR/NAME/results.json, as Gradescope reads it' -r
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from grade" -l seed -d 'Seed of the inputs [default: 1]; each student has other numbers' -r
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from grade" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from grade" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bundle" -l repository -d 'Where the autograder clones Gradus from' -r
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bundle" -l commit -d 'The commit that grades; without it, the newest one when the autograder\'s image is built' -r
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bundle" -l seed -d 'Seed of the inputs, from which and from the student\'s number those of each student are made' -r
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bundle" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bundle" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bug" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bug" -l hint -d 'Give a hint; each call says more'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bug" -l check -d 'Check whether the bug is gone; exit code 1 if it is not'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bug" -l reset -d 'Put the file with the bug back'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from bug" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from watch" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand course; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand pages" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand pages" -l write -d 'Replace the numbers that differ by the numbers in the tables, and move queries from the page into the file beside it'
complete -c gradus -n "__fish_gradus_using_subcommand pages" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand check" -l trace -d 'Instead, replay the episodes recorded in this file and compare the results with the recorded ones. The file has one JSON object per line, from `gradus play --record` or from Gymnasium' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand check" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand check" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand new" -l name -d 'Name of the crate [default: the folder\'s name]' -r
complete -c gradus -n "__fish_gradus_using_subcommand new" -l path -d 'Folder of Gradus\'s source, for the dependency [default: the source that this program was built from]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand new" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand new" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand verify" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand verify" -l all -d 'Also list the files that are as they were written'
complete -c gradus -n "__fish_gradus_using_subcommand verify" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand list" -l settings -d 'List the key, default and meaning of every setting instead, or of the settings of one agent' -r -f -a "reinforce\t''
a2c\t''
a3c\t''
trpo\t''
ppo\t''
grpo\t''
dpo\t''
dqn\t''
munchausen-dqn\t''
qr-dqn\t''
pqn\t''
ddpg\t''
td3\t''
sac\t''
q-learning\t''
double-q-learning\t''
sarsa\t''
expected-sarsa\t''
n-step-sarsa\t''
sarsa-lambda\t''
monte-carlo\t''
off-policy-monte-carlo\t''
dyna-q\t''
prioritised-sweeping\t''
tile-sarsa\t''
value-iteration\t''
policy-iteration\t''
policy-evaluation\t''
monte-carlo-prediction\t''
td-lambda\t''
n-step-td\t''"
complete -c gradus -n "__fish_gradus_using_subcommand list" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand list" -l presets -d 'List the presets and where they are from instead'
complete -c gradus -n "__fish_gradus_using_subcommand list" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand guide" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand guide" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand doctor" -l device -d 'Fail with exit code 2 unless this device works: cpu, torch-cpu, cuda, cuda:N or mps' -r
complete -c gradus -n "__fish_gradus_using_subcommand doctor" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "solve" -d 'Time that PPO takes to solve CartPole'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "roofline" -d 'Training speed of an agent, relative to the machine\'s peak multiplication rate'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "train" -d 'Environment steps per second of a training, including rollouts and updates'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "growth" -d 'Time per step and memory use during one long run, written as a table and a figure'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "seeds" -d 'Steps per second of several simultaneous single-threaded trainings, both in one process and with one process per training'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "busy" -d 'Steps per second of trainings on all cores, relative to one thread, on a busy machine: next to a process that uses a core, and with two and four trainings at once'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "text" -d 'Completion tokens per second of GRPO with a transformer, generation and update together'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "device" -d 'Steps per second of PPO on CartPole or GRPO on a text task, including rollouts and updates. The policy is on one device, and the environments are on the same device or on the host'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "env" -d 'Steps per second of an environment with random actions'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "product" -d 'Share of one core\'s peak multiplication rate that matrix products reach, by shape: layers of perceptrons, and their gradients'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and not __fish_seen_subcommand_from solve roofline train growth seeds busy text device env product cartpole" -f -a "cartpole" -d 'Same as `env cartpole`'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from solve" -l seeds -d 'Number of seeds N; the seeds are 1 to N' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from solve" -l preset -d 'Preset [default: default]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from solve" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from solve" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -l agent -d 'Agent: ppo, dqn, ddpg, td3 or sac' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -l env -d 'Environment [default: the first that the agent has presets for]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -l preset -d 'Preset' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -l envs -d 'Number of environments in lockstep [default: the preset\'s]; the minibatch size changes in proportion, which keeps the number of minibatches the same' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -l set -d 'One setting, applied last, such as network.hidden=[256]; may be repeated' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -l threads -d 'Number of threads [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from roofline" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from train" -l preset -d 'Preset [default: default]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from train" -l set -d 'One setting, applied after the preset, such as device=cuda; may be repeated' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from train" -l rounds -d 'Number of measurements, half a second each' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from train" -l threads -d 'Number of threads [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from train" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from train" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l steps -d 'Environment steps of the run, at least 10k' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l agent -d 'Agent' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l env -d 'Environment [default: the first that the agent has presets for]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l preset -d 'Preset' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l set -d 'One setting, applied after the preset, such as dqn.buffer_size=1000000; may be repeated' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l out -d 'Folder for growth.csv, growth.svg and growth.png; also holds the run folder until the run ends' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l threads -d 'Number of threads [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from growth" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from seeds" -l seeds -d 'Number of simultaneous trainings [default: one per core]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from seeds" -l preset -d 'Preset' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from seeds" -l rounds -d 'Number of measurements in one process, and as many in several processes; each takes half a second' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from seeds" -l serve -d 'Run as one of the measured processes, with this seed' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from seeds" -l threads -d 'Threads of the measured process' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from seeds" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from seeds" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from busy" -l preset -d 'Preset' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from busy" -l rounds -d 'Number of measurements of each situation with all cores, and as many with one thread; each takes half a second' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from busy" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from busy" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l layers -d 'Number of transformer layers' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l width -d 'Embedding width' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l heads -d 'Attention heads per layer' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l feed-forward-width -d 'Hidden width of the feed-forward layers' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l prompts -d 'Prompts per update' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l group -d 'Completions per prompt' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l prompt-tokens -d 'Tokens per prompt' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l new-tokens -d 'Tokens per completion' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l device -d 'Device: cpu, torch-cpu, cuda, cuda:N or mps' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l precision -d 'Precision of libtorch\'s matrix products: f32, tf32 or bf16' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l micro-batch -d 'Tokens per micro-batch on libtorch; 0: all tokens of a minibatch' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l updates -d 'Number of measured updates' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l threads -d 'Number of threads [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from text" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l device -d 'Device: cpu, torch-cpu, cuda, cuda:N or mps' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l env -d 'Environment: cartpole, or a text task such as target-sum' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l envs -d 'Number of environments in lockstep' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l steps -d 'Steps of each environment in a rollout; ignored on text tasks' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l epochs -d 'Epochs per rollout' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l minibatches -d 'Minibatches per epoch' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l worlds -d 'Where the environments run: device, host or auto' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l updates -d 'Number of measured updates' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l threads -d 'Number of threads [default: all cores]' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from device" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from env" -l envs -d 'Number of environments in lockstep' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from env" -l threads -d 'Number of threads, each with an equal share of the environments' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from env" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from env" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from product" -l rounds -d 'Number of measurements of each shape, two milliseconds each' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from product" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from product" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from cartpole" -l envs -d 'Number of environments in lockstep' -r
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from cartpole" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand bench; and __fish_seen_subcommand_from cartpole" -s h -l help -d 'Print help'
complete -c gradus -n "__fish_gradus_using_subcommand help" -l python -d 'Python interpreter for environments gym:ID and reward functions [default: the active virtual environment\'s, or python3]' -r -F
complete -c gradus -n "__fish_gradus_using_subcommand help" -s h -l help -d 'Print help'
