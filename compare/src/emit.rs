//! Scripts that run a study on a cluster.

/// A program that starts jobs on many machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// SLURM: an array job.
    Slurm,
    /// HyperQueue: a task array.
    HyperQueue,
    /// Kubernetes: an indexed job.
    Kubernetes,
}

/// Most tasks of an array: SLURM's default for `MaxArraySize` is 1001, which is one more than the last index.
const MOST: usize = 1000;

/// What a script does.
pub struct Script<'a> {
    /// Name of the job.
    pub name: &'a str,
    /// The command with its file and its folder, without the part of the runs.
    pub command: &'a str,
    /// What the command of each task ends with, such as ` --quiet`.
    pub options: &'a str,
    /// The command that writes the report afterwards.
    pub finish: &'a str,
    /// Number of runs.
    pub runs: usize,
    /// Whether all tasks have the same command, and share the runs by themselves.
    pub is_shared: bool,
}

impl Script<'_> {
    /// Returns the script.
    pub fn text(&self, scheduler: Scheduler) -> String {
        let tasks = self.runs.min(MOST);
        // what a task does with its number, which is the name of a variable of the shell
        let task = |number: &str| match (self.is_shared, self.runs > MOST) {
            (true, _) => self.command.to_owned(),
            (false, false) => format!("{} --task {number}", self.command),
            (false, true) => format!("{} --shard {number}/{tasks}", self.command),
        };
        let name = label(self.name);
        let Self { options, runs, finish, .. } = self;
        let what = if self.is_shared { "tasks" } else { "runs" };
        let finish =
            if self.is_shared { "The last task writes the report".to_owned() } else { format!("Afterwards, for the report: {finish}") };
        match scheduler {
            Scheduler::Slurm => format!(
                "#!/bin/bash\n# {runs} {what}. Start: sbatch FILE. {finish}\n#SBATCH --job-name={name}\n#SBATCH --array=1-{tasks}\n#SBATCH --cpus-per-task=1\n\
                 #SBATCH --mem=1G\n#SBATCH --output={name}-%A.log\n#SBATCH --open-mode=append\n#SBATCH --requeue\n{}{options}\n",
                task("\"$SLURM_ARRAY_TASK_ID\"")
            ),
            Scheduler::HyperQueue => format!(
                "#!/bin/bash\n# {runs} {what}. Start, beside a server and workers of HyperQueue: bash FILE. {finish}\n\
                 hq submit --name {name} --array 1-{tasks} --cpus 1 --crash-limit 10 --stdout none --wait -- bash -c '{}{options}'\n",
                task("$HQ_TASK_ID").replace('\'', "'\\''")
            ),
            Scheduler::Kubernetes => {
                // the index counts from 0
                let line = format!("{}{options}", task("$((JOB_COMPLETION_INDEX + 1))"));
                let line = line.replace('\\', "\\\\").replace('"', "\\\"");
                format!(
                    "# {runs} {what}. Not run by the authors of this file: IMAGE and CLAIM are yours, an image with the program and a volume that\n\
                     # all pods share. Start: kubectl apply -f FILE. {finish}\n\
                     apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n  completionMode: Indexed\n  completions: {tasks}\n  parallelism: {}\n  \
                     backoffLimitPerIndex: 10\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n        - name: gradus\n          image: IMAGE\n          \
                     workingDir: /study\n          command: [\"bash\", \"-c\", \"{line}\"]\n          resources:\n            requests:\n              cpu: \"1\"\n              memory: 1Gi\n          \
                     volumeMounts:\n            - name: study\n              mountPath: /study\n      volumes:\n        - name: study\n          persistentVolumeClaim:\n            claimName: CLAIM\n",
                    tasks.min(100)
                )
            }
        }
    }
}

/// A name of small letters, digits and hyphens, as Kubernetes wants it.
fn label(name: &str) -> String {
    let plain: String = name.to_lowercase().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let label: String = words.join("-").chars().take(50).collect();
    if label.is_empty() { "gradus".into() } else { label.trim_end_matches('-').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_its_number() {
        let script = |runs, scheduler| {
            Script {
                name: "PPO's clip range",
                command: "gradus sweep 'a b.toml' --out x",
                options: " --jobs 1 --quiet",
                finish: "gradus",
                runs,
                is_shared: false,
            }
            .text(scheduler)
        };
        let slurm = script(200, Scheduler::Slurm);
        assert!(slurm.contains("#SBATCH --array=1-200\n") && slurm.contains("#SBATCH --job-name=ppo-s-clip-range\n"), "{slurm}");
        assert!(slurm.ends_with("\ngradus sweep 'a b.toml' --out x --task \"$SLURM_ARRAY_TASK_ID\" --jobs 1 --quiet\n"), "{slurm}");
        assert!(
            script(5000, Scheduler::Slurm).contains("--array=1-1000\n")
                && script(5000, Scheduler::Slurm).contains("--shard \"$SLURM_ARRAY_TASK_ID\"/1000 ")
        );
        let hq = script(3, Scheduler::HyperQueue);
        assert!(
            hq.contains("--array 1-3 ")
                && hq.contains("bash -c 'gradus sweep '\\''a b.toml'\\'' --out x --task $HQ_TASK_ID --jobs 1 --quiet'"),
            "{hq}"
        );
        let k8s = script(3, Scheduler::Kubernetes);
        assert!(k8s.contains("completions: 3\n") && k8s.contains("--task $((JOB_COMPLETION_INDEX + 1)) --jobs 1"), "{k8s}");
        let shared = Script { name: "", command: "gradus tune t.toml", options: " --quiet", finish: "", runs: 8, is_shared: true }
            .text(Scheduler::Slurm);
        assert!(
            shared.ends_with("\ngradus tune t.toml --quiet\n")
                && shared.contains("--job-name=gradus\n")
                && shared.contains("\n# 8 tasks. "),
            "{shared}"
        );
    }
}
