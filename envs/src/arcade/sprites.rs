//! What the pixels of a plane look like in a picture: 8 x 8 dots, a byte for each row.

use super::Sprite;

#[rustfmt::skip]
pub const PADDLE: Sprite = [
    0b00000000,
    0b00000000,
    0b01111110,
    0b11111111,
    0b11111111,
    0b01111110,
    0b00000000,
    0b00000000,
];
#[rustfmt::skip]
pub const BALL: Sprite = [
    0b00111100,
    0b01111110,
    0b11111111,
    0b11111111,
    0b11111111,
    0b11111111,
    0b01111110,
    0b00111100,
];
#[rustfmt::skip]
pub const TRAIL: Sprite = [
    0b00000000,
    0b00000000,
    0b00011000,
    0b00111100,
    0b00111100,
    0b00011000,
    0b00000000,
    0b00000000,
];
#[rustfmt::skip]
pub const BRICK: Sprite = [
    0b11111110,
    0b11111110,
    0b11111110,
    0b11111110,
    0b11111110,
    0b11111110,
    0b11111110,
    0b00000000,
];
#[rustfmt::skip]
pub const CHICKEN: Sprite = [
    0b00011000,
    0b00111100,
    0b00110110,
    0b00111110,
    0b10111100,
    0b11111100,
    0b01111000,
    0b00101000,
];
#[rustfmt::skip]
pub const CAR: Sprite = [
    0b00000000,
    0b00111100,
    0b01111110,
    0b11111111,
    0b11111111,
    0b11111111,
    0b01100110,
    0b00000000,
];
#[rustfmt::skip]
pub const PLAYER: Sprite = [
    0b10000001,
    0b11000011,
    0b01111110,
    0b01011010,
    0b01111110,
    0b00111100,
    0b01111110,
    0b01100110,
];
#[rustfmt::skip]
pub const ENEMY: Sprite = [
    0b00111100,
    0b01111110,
    0b11011011,
    0b11111111,
    0b11111111,
    0b01111110,
    0b01011010,
    0b10000001,
];
#[rustfmt::skip]
pub const GOLD: Sprite = [
    0b00111100,
    0b01100110,
    0b11011011,
    0b11011111,
    0b11011011,
    0b01100110,
    0b00111100,
    0b00000000,
];
#[rustfmt::skip]
pub const FRONT: Sprite = [
    0b00011000,
    0b00011000,
    0b01111110,
    0b11111111,
    0b11011011,
    0b11111111,
    0b01111110,
    0b00000000,
];
#[rustfmt::skip]
pub const BACK: Sprite = [
    0b00000000,
    0b00000000,
    0b10011110,
    0b11111111,
    0b11111111,
    0b11111111,
    0b10011110,
    0b00000000,
];
#[rustfmt::skip]
pub const BULLET: Sprite = [
    0b00000000,
    0b00000000,
    0b00000000,
    0b01111110,
    0b01111110,
    0b00000000,
    0b00000000,
    0b00000000,
];
#[rustfmt::skip]
pub const SHOT: Sprite = [
    0b00011000,
    0b00011000,
    0b00011000,
    0b00011000,
    0b00011000,
    0b00011000,
    0b00011000,
    0b00000000,
];
#[rustfmt::skip]
pub const FISH: Sprite = [
    0b00000000,
    0b00111000,
    0b01111101,
    0b11011111,
    0b11111111,
    0b01111101,
    0b00111000,
    0b00000000,
];
#[rustfmt::skip]
pub const SUBMARINE: Sprite = [
    0b00001100,
    0b00001100,
    0b01111110,
    0b11011011,
    0b11111111,
    0b11111111,
    0b01111110,
    0b00000000,
];
#[rustfmt::skip]
pub const GAUGE: Sprite = [
    0b00000000,
    0b00000000,
    0b11111111,
    0b11111111,
    0b11111111,
    0b11111111,
    0b00000000,
    0b00000000,
];
#[rustfmt::skip]
pub const DIVER: Sprite = [
    0b00110000,
    0b00110000,
    0b11111100,
    0b01111100,
    0b00111100,
    0b00111110,
    0b00100110,
    0b00000000,
];
#[rustfmt::skip]
pub const ALIEN: Sprite = [
    0b00011000,
    0b00111100,
    0b01111110,
    0b11011011,
    0b11111111,
    0b00100100,
    0b01011010,
    0b10100101,
];
#[rustfmt::skip]
pub const CANNON: Sprite = [
    0b00011000,
    0b00011000,
    0b00111100,
    0b01111110,
    0b11111111,
    0b11111111,
    0b11111111,
    0b00000000,
];
#[rustfmt::skip]
pub const WIND: Sprite = [
    0b00000000,
    0b00000000,
    0b00000000,
    0b00111100,
    0b00000000,
    0b00011100,
    0b00000000,
    0b00000000,
];
#[rustfmt::skip]
pub const KEY: Sprite = [
    0b00111100,
    0b00100100,
    0b00111100,
    0b00011000,
    0b00011000,
    0b00011100,
    0b00011000,
    0b00011100,
];
#[rustfmt::skip]
pub const DOOR: Sprite = [
    0b01111110,
    0b01000010,
    0b01000010,
    0b01001010,
    0b01000010,
    0b01000010,
    0b01111110,
    0b00000000,
];
#[rustfmt::skip]
pub const OPEN_DOOR: Sprite = [
    0b01111110,
    0b01000000,
    0b01000000,
    0b01000000,
    0b01000000,
    0b01000000,
    0b01111110,
    0b00000000,
];
#[rustfmt::skip]
pub const GOAL: Sprite = [
    0b00100000,
    0b00111100,
    0b00111110,
    0b00111100,
    0b00100000,
    0b00100000,
    0b01110000,
    0b00000000,
];
