//! Blackjack-v1, as in Gymnasium (after Sutton and Barto, example 5.1): draw cards to come close to 21, but not above it.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(2)`: 0 stick, 1 hit |
//! | observations | `Discrete(715)`: 22 x player's sum + 2 x dealer's card + usable ace; from 704 on, a natural against dealer's card 0 to 10 |
//! | reward | 1 for winning, -1 for losing, 0 for a draw, and 0 on every step before the end |
//! | start | two cards for the player and two for the dealer, who shows the first |
//! | end | terminated after sticking, and after going above 21 |
//!
//! Cards are drawn with replacement: 1 (an ace) to 9 with probability 1/13 each, and 10 with probability 4/13. An ace is usable if it can count
//! 11 without going above 21; the player's sum then includes the 11. After the player has stuck, the dealer draws until his sum is 17 or more.
//!
//! Gymnasium has two rules about an ace and a ten as the first two cards, a *natural*. As registered (`sab=True`, Sutton and Barto's rules), a player
//! with a natural who sticks wins, unless the dealer has one, too. A natural is the same observation as any other 21 with a usable ace there. Here it has a state
//! of its own, so that the table is a Markov decision process.

use super::{Outcome, StateMap, Table, Tabular};

/// Numbers of sums, of dealer's cards and of usable aces in an observation; Gymnasium's spaces have these sizes, too.
const SUMS: usize = 32;
const CARDS: usize = 11;
/// The first state with a natural.
const NATURAL: usize = SUMS * CARDS * 2;
const STATES: usize = NATURAL + CARDS;

/// Returns the probability of a card from 1 to 10.
fn probability(card: usize) -> f64 {
    if card == 10 { 4.0 / 13.0 } else { 1.0 / 13.0 }
}

/// A hand: its sum, and whether an ace in it counts 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hand {
    sum: usize,
    is_usable: bool,
}

impl Hand {
    fn of(card: usize) -> Self {
        Self { sum: 0, is_usable: false }.with(card)
    }

    /// Returns the hand with one more card. A usable ace counts 1 again if 11 is too much.
    fn with(self, card: usize) -> Self {
        let (hard, has_ace) = (self.sum - 10 * usize::from(self.is_usable) + card, self.is_usable || card == 1);
        let is_usable = has_ace && hard + 10 <= 21;
        Self { sum: hard + 10 * usize::from(is_usable), is_usable }
    }
}

/// The chances of the dealer's hand, who shows a card.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Dealer {
    /// Probability of a final sum of 17 to 21, including naturals.
    sums: [f64; 5],
    /// Probability of going above 21.
    bust: f64,
    /// Probability of a natural.
    natural: f64,
}

impl Dealer {
    fn showing(card: usize) -> Self {
        let mut dealer = Self::default();
        for second in 1..=10 {
            let (hand, p) = (Hand::of(card).with(second), probability(second));
            if card.min(second) == 1 && card.max(second) == 10 {
                dealer.natural += p;
            }
            dealer.play(hand, p);
        }
        dealer
    }

    fn play(&mut self, hand: Hand, p: f64) {
        match hand.sum {
            sum @ 17..=21 => self.sums[sum - 17] += p,
            22.. => self.bust += p,
            _ => (1..=10).for_each(|card| self.play(hand.with(card), p * probability(card))),
        }
    }

    /// Returns the probabilities that the player wins and that he loses with this sum.
    fn against(&self, player: usize) -> [f64; 2] {
        let total =
            |is_counted: &dyn Fn(usize) -> bool| (17..=21).filter(|sum| is_counted(*sum)).map(|sum| self.sums[sum - 17]).sum::<f64>();
        [self.bust + total(&|sum| sum < player), total(&|sum| sum > player)]
    }
}

/// The transition table of Blackjack.
#[derive(Clone, Debug, PartialEq)]
pub struct Blackjack {
    table: Table,
}

impl Blackjack {
    /// Builds the table.
    pub fn new() -> Self {
        let outcomes = (0..STATES).flat_map(|state| [Self::stick(state), Self::hit(state)]).collect();
        Self { table: Table::new(2, outcomes, Self::starts()).expect("the rules above give distributions") }
    }

    /// Returns the number of the state in which the player has this sum, against this card of the dealer (1 to 10). A natural has another
    /// state: see [`natural`](Self::natural).
    ///
    /// ```
    /// use gradus_envs::tabular::Blackjack;
    ///
    /// assert_eq!(Blackjack::state(13, 2, true), 22 * 13 + 2 * 2 + 1);
    /// ```
    pub fn state(sum: usize, dealer: usize, has_usable_ace: bool) -> usize {
        2 * (CARDS * sum + dealer) + usize::from(has_usable_ace)
    }

    /// Returns the number of the state in which the player has a natural, against this card of the dealer.
    pub fn natural(dealer: usize) -> usize {
        NATURAL + dealer
    }

    /// Returns the player's sum, the dealer's card and whether the player has a usable ace.
    pub fn parts(state: usize) -> (usize, usize, bool) {
        match state.checked_sub(NATURAL) {
            Some(dealer) => (21, dealer, true),
            None => (state / 2 / CARDS, state / 2 % CARDS, state % 2 == 1),
        }
    }

    fn stick(state: usize) -> Vec<Outcome> {
        let (sum, card, _) = Self::parts(state);
        let end = |probability, reward| Outcome { probability, next: state as u32, reward, terminated: true };
        if card == 0 || sum > 21 {
            return vec![end(1.0, 0.0)]; // not a state of the game
        }
        let dealer = Dealer::showing(card);
        let [win, loss] = if state >= NATURAL { [1.0 - dealer.natural, 0.0] } else { dealer.against(sum) };
        [(win, 1.0), (loss, -1.0), (1.0 - win - loss, 0.0)]
            .into_iter()
            .filter(|(p, _)| *p > 1e-12)
            .map(|(p, reward)| end(p, reward))
            .collect()
    }

    fn hit(state: usize) -> Vec<Outcome> {
        let (sum, dealer, is_usable) = Self::parts(state);
        if dealer == 0 || sum > 21 || is_usable && sum < 11 {
            return vec![Outcome { probability: 1.0, next: state as u32, reward: 0.0, terminated: true }]; // not a state of the game
        }
        let outcome = |card| {
            let hand = Hand { sum, is_usable }.with(card);
            let is_bust = hand.sum > 21;
            let next = Self::state(hand.sum, dealer, hand.is_usable) as u32;
            Outcome { probability: probability(card), next, reward: if is_bust { -1.0 } else { 0.0 }, terminated: is_bust }
        };
        (1..=10).map(outcome).collect()
    }

    fn starts() -> Vec<f64> {
        let mut starts = vec![0.0; STATES];
        for (dealer, first, second) in (1..=10).flat_map(|dealer| (1..=100).map(move |i| (dealer, 1 + (i - 1) / 10, 1 + (i - 1) % 10))) {
            let hand = Hand::of(first).with(second);
            let state = if hand.sum == 21 { Self::natural(dealer) } else { Self::state(hand.sum, dealer, hand.is_usable) };
            starts[state] += probability(dealer) * probability(first) * probability(second);
        }
        starts
    }
}

impl Default for Blackjack {
    fn default() -> Self {
        Self::new()
    }
}

impl Tabular for Blackjack {
    fn table(&self) -> &Table {
        &self.table
    }

    /// Sums from 21 down to 12, and the dealer's cards from the ace to 10, as in the textbook's figures.
    fn maps(&self) -> Vec<StateMap> {
        let card = |card: usize| if card == 1 { "A".to_owned() } else { card.to_string() };
        let map = |has_ace: bool| StateMap {
            title: if has_ace { "usable ace" } else { "no usable ace" }.into(),
            axes: "rows: the player's sum; columns: the dealer's card; S: stick, H: hit".into(),
            names: [(12..=21).rev().map(|sum| sum.to_string()).collect(), (1..=10).map(card).collect()],
            columns: 10,
            states: (12..=21).rev().flat_map(|sum| (1..=10).map(move |card| Some(Self::state(sum, card, has_ace) as u32))).collect(),
            letters: vec!['S', 'H'],
            ..StateMap::default()
        };
        vec![map(true), map(false)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_are_counted_as_at_the_table() {
        let hand = |cards: &[usize]| cards[1..].iter().fold(Hand::of(cards[0]), |hand, card| hand.with(*card));
        for (cards, sum, is_usable) in
            [(&[1, 10][..], 21, true), (&[1, 1], 12, true), (&[1, 5, 10], 16, false), (&[1, 1, 10], 12, false), (&[10, 5, 7], 22, false)]
        {
            assert_eq!(hand(cards), Hand { sum, is_usable }, "{cards:?}");
        }
    }

    /// The probabilities of an infinite deck with a dealer who stands on all 17, as tabulated by Griffin, "The Theory of Blackjack", and elsewhere.
    #[test]
    fn the_dealers_chances_are_the_known_ones() {
        for (card, bust, seventeen) in [(2, 0.3536, 0.1398), (6, 0.4232, 0.1654), (10, 0.2121, 0.1114), (1, 0.1153, 0.1308)] {
            let dealer = Dealer::showing(card);
            assert!((dealer.bust - bust).abs() < 1e-4 && (dealer.sums[0] - seventeen).abs() < 1e-4, "{card}: {dealer:?}");
            assert!((dealer.bust + dealer.sums.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
