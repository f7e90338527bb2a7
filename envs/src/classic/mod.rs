//! Classic control: the five tasks of Gymnasium's `classic_control`. Nearly every step agrees with Gymnasium's bit for bit.
//!
//! | environment | actions | file |
//! |---|---|---|
//! | [`CartPole`]: balance a pole on a cart | discrete | `cartpole.rs` |
//! | [`MountainCar`]: drive an underpowered car up a hill | discrete | `mountain_car.rs` |
//! | [`MountainCarContinuous`]: drive the same car with a continuous force | continuous | `mountain_car_continuous.rs` |
//! | [`Acrobot`]: swing the tip of a double pendulum above a line | discrete | `acrobot.rs` |
//! | [`Pendulum`]: swing a pendulum up and balance it | continuous | `pendulum.rs` |

mod acrobot;
mod cartpole;
mod mountain_car;
mod mountain_car_continuous;
mod pendulum;

pub use acrobot::Acrobot;
pub use cartpole::{CartPole, CartPoleBatch};
pub use mountain_car::MountainCar;
pub use mountain_car_continuous::MountainCarContinuous;
pub use pendulum::Pendulum;
