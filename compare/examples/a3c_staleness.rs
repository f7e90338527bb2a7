//! Makes `staleness.csv`, `.svg` and `.png` in `results/cartpole/staleness`: the return of A3C on CartPole-v1 over the mean staleness of its
//! gradients. The runs are those of a comparison, which must be made first:
//!
//! `cargo run --release -- compare results/cartpole/staleness.toml --out results/cartpole/staleness`
//! `cargo run --release --example a3c_staleness`

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use gradus::figure::{self, Chart, Figure, Lines, Series};
use gradus_compare::statistics::table::{Point, Table};
use gradus_compare::statistics::{Aggregate, Bootstrap, Scores};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("results/cartpole/staleness");
    let table = Table::parse(&std::fs::read_to_string(folder.join("results.csv"))?)?;
    let last = |points: &[Point]| points[points.len() - 1].value;
    // without the evaluation before training
    let mean = |points: &[Point]| points[1..].iter().map(|point| point.value).sum::<f64>() / (points.len() - 1) as f64;
    let mut csv = String::from("workers,staleness,measure,mean,low,high\n");
    let mut series = |label: &str, of: &dyn Fn(&[Point]) -> f64| -> Result<Series, Box<dyn Error>> {
        let (mut points, mut band) = (Vec::new(), Vec::new());
        for (agent, runs) in table.agents.iter().zip(&table.runs) {
            let workers: f64 = agent.split(' ').next().unwrap_or_default().parse()?;
            let scores = Scores::new(vec![runs[0].iter().map(|run| of(&run.points)).collect()])?;
            let estimate = Bootstrap::default().aggregates(&[&scores], &[Aggregate::Mean])[0][0];
            points.push((workers - 1.0, estimate.point));
            band.push((workers - 1.0, estimate.low, estimate.high));
            writeln!(csv, "{workers},{},{label},{},{},{}", workers - 1.0, estimate.point, estimate.low, estimate.high)?;
            println!("{agent}: {label} {:.1} [{:.1}, {:.1}]", estimate.point, estimate.low, estimate.high);
        }
        Ok(Series { band, ..Series::new(label, points) })
    };
    let series = vec![series("mean of all evaluations", &mean)?, series("final parameters", &last)?];
    std::fs::write(folder.join("staleness.csv"), csv)?;
    let lines = Lines {
        x_label: "mean staleness: updates of other workers between copying the parameters and applying the gradient".into(),
        y_label: "return of the greedy policy".into(),
        series,
        ..Lines::default()
    };
    let note = format!("mean of {} runs, 95 % bootstrap interval; 1 to 32 workers", table.runs[0][0].len());
    let figure = Figure { title: "A3C on CartPole-v1: return over staleness".into(), note, ..Figure::of(Chart::Lines(lines)) };
    for ending in ["svg", "png"] {
        figure::write(&figure, &folder.join(format!("staleness.{ending}")))?;
    }
    Ok(())
}
