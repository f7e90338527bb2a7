//! The random numbers of NumPy's `RandomState`: the Mersenne Twister (Matsumoto and Nishimura, 1998) and what NumPy makes of its words.

use gradus_envs::arcade::Draws;

const N: usize = 624;
const M: usize = 397;

pub struct RandomState {
    words: [u32; N],
    next: usize,
}

impl RandomState {
    pub fn new(seed: u32) -> Self {
        let mut words = [seed; N];
        for i in 1..N {
            let before = words[i - 1];
            words[i] = 1_812_433_253_u32.wrapping_mul(before ^ before >> 30).wrapping_add(i as u32);
        }
        Self { words, next: N }
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            for i in 0..N {
                let both = self.words[i] & 1 << 31 | self.words[(i + 1) % N] & !(1 << 31);
                self.words[i] = self.words[(i + M) % N] ^ both >> 1 ^ if both % 2 == 1 { 0x9908_b0df } else { 0 };
            }
            self.next = 0;
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }
}

impl Draws for RandomState {
    fn unit(&mut self) -> f64 {
        let (high, low) = (f64::from(self.word() >> 5), f64::from(self.word() >> 6));
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    fn below(&mut self, n: u32) -> u32 {
        if n == 1 {
            return 0;
        }
        let mask = u32::MAX >> (n - 1).leading_zeros();
        loop {
            let word = self.word() & mask;
            if word < n {
                return word;
            }
        }
    }
}

#[test]
fn numbers_are_those_of_numpy() {
    let mut random = RandomState::new(1);
    let drawn: Vec<u32> = (0..5).map(|_| random.below(8)).collect();
    // numpy.random.RandomState(1).randint(8), five times
    assert_eq!(drawn, [5, 3, 4, 0, 7]);
    // numpy.random.RandomState(1).rand()
    assert_eq!(RandomState::new(1).unit(), 0.417_022_004_702_574);
}
