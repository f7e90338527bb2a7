//! TensorBoard event files: the scalars of a run, written while it trains.
//!
//! An event file is a sequence of TFRecords, and each record holds one protocol buffer:
//!
//! ```text
//! record   length: u64, masked crc32c of the length: u32, payload, masked crc32c of the payload: u32   (little endian)
//! Event    1 wall_time: double   2 step: int64   3 file_version: string   5 summary: Summary
//! Summary  1 value: repeated Value
//! Value    1 tag: string         2 simple_value: float
//! ```
//!
//! Scalars need only this part of both formats, so there is no dependency on a protobuf compiler. The bytes are the same as those of
//! Python's `tensorboard` package.
//!
//! ```
//! use gradus::run::tensorboard::EventFile;
//!
//! let mut bytes = Vec::new();
//! let mut events = EventFile::new(&mut bytes, 1.7e9)?;
//! events.scalars(1.7e9, 512, &[("rollout/ep_rew_mean", 21.5), ("train/approx_kl", 0.01)])?;
//! assert_eq!(&bytes[23..36], b"brain.Event:2");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, Write};

/// Returns a file name that TensorBoard and Weights & Biases find. TensorBoard reads every file whose name contains `tfevents`. Weights &
/// Biases reads the files whose time is not before the start of its run, and only those of its own machine.
pub fn file_name(unix_seconds: u64) -> String {
    format!("events.out.tfevents.{unix_seconds}.{}.gradus", host())
}

/// Returns the name of this machine; `localhost` if the system does not tell it.
fn host() -> String {
    let told = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let printed = || String::from_utf8(std::process::Command::new("hostname").output().ok()?.stdout).ok();
    let name = told().or_else(printed).unwrap_or_default();
    // it becomes a part of a file's name
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name = name.trim();
    if !name.is_empty() && name.chars().all(is_plain) { name.into() } else { "localhost".into() }
}

/// A writer of event records. Each record is written by a single `write_all`, so a killed run leaves at most one incomplete record, at the
/// end.
#[derive(Debug)]
pub struct EventFile<W: Write> {
    out: W,
}

impl<W: Write> EventFile<W> {
    /// Starts a new file with the version record, which readers expect first. `wall_time` is in seconds since 1970.
    pub fn new(out: W, wall_time: f64) -> io::Result<Self> {
        let mut file = Self { out };
        let mut event = event(wall_time, 0);
        put_bytes(&mut event, 3, b"brain.Event:2");
        file.record(&event)?;
        Ok(file)
    }

    /// Continues a file that already has its version record. `out` must be at the end of the file's last complete record.
    pub fn continue_from(out: W) -> Self {
        Self { out }
    }

    /// Writes one event with all of `values` at `step`. Does not flush.
    pub fn scalars(&mut self, wall_time: f64, step: u64, values: &[(&str, f32)]) -> io::Result<()> {
        let mut summary = Vec::new();
        for &(tag, value) in values {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, tag.as_bytes());
            put_key(&mut entry, 2, FOUR_BYTES);
            entry.extend(value.to_le_bytes());
            put_bytes(&mut summary, 1, &entry);
        }
        let mut event = event(wall_time, step);
        put_bytes(&mut event, 5, &summary);
        self.record(&event)
    }

    /// Returns the underlying writer, for instance to flush it or to get its length.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    fn record(&mut self, payload: &[u8]) -> io::Result<()> {
        let length = (payload.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(payload.len() + 16);
        record.extend(length);
        record.extend(masked(crc32c(&length)).to_le_bytes());
        record.extend(payload);
        record.extend(masked(crc32c(payload)).to_le_bytes());
        self.out.write_all(&record)
    }
}

// Protocol buffers: a field is a key, (number << 3) | wire type, followed by its value.

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const BYTES: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Returns the beginning of an event. Step 0 is left out, because protocol buffers omit default values.
fn event(wall_time: f64, step: u64) -> Vec<u8> {
    let mut event = Vec::new();
    put_key(&mut event, 1, EIGHT_BYTES);
    event.extend(wall_time.to_le_bytes());
    if step != 0 {
        put_key(&mut event, 2, VARINT);
        put_varint(&mut event, step);
    }
    event
}

fn put_key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    put_varint(out, (field << 3) | wire_type);
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_key(out, field, BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Writes seven bits per byte, the lowest bits first. The top bit of a byte is 1 if more bytes follow.
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

// Checksums: CRC-32C, the Castagnoli polynomial 0x1EDC6F41, here with its bits reversed.

static CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0;
    for byte in bytes {
        crc = (crc >> 8) ^ CRC_TABLE[usize::from(crc as u8 ^ byte)];
    }
    !crc
}

/// Rotates a checksum and adds a constant, as TFRecord does because the checksum of data that contains its own checksum is weak.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xA282_EAD8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_published_vectors() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        // RFC 3720, section B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(&std::array::from_fn::<u8, 32, _>(|i| i as u8)), 0x46DD_794E);
    }

    #[test]
    fn varints_store_seven_bits_per_byte() {
        for (value, bytes) in
            [(0, &[0][..]), (127, &[0x7F]), (128, &[0x80, 1]), (300, &[0xAC, 2]), (1 << 35, &[0x80, 0x80, 0x80, 0x80, 0x80, 1])]
        {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, bytes, "{value}");
        }
    }

    /// Made with Python's tensorboard 2.21.0: the three events of the test below as `Event` messages of
    /// `tensorboard.compat.proto.event_pb2`, each passed through `SerializeToString` to the `RecordWriter` of
    /// `tensorboard.summary.writer.record_writer`. These are the hexadecimal digits of its output.
    const FROM_PYTHON: &str = concat!(
        "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9",
        "420000000000000079f36eaa0900006040fc54d94110ac022a340a1a0a13726f6c6c6f75742f65705f7265775f6d65616e150000ac41",
        "0a160a0f747261696e2f617070726f785f6b6c1500000000eb9e3694",
        "2300000000000000b09f77430900008040fc54d9412a180a160a0f747261696e2f617070726f785f6b6c156f1283ba3c2d0c9d",
    );

    #[test]
    fn a_file_has_the_bytes_that_python_writes() {
        let mut bytes = Vec::new();
        let mut file = EventFile::new(&mut bytes, 1_700_000_000.25).unwrap();
        file.scalars(1_700_000_001.5, 300, &[("rollout/ep_rew_mean", 21.5), ("train/approx_kl", 0.0)]).unwrap();
        file.scalars(1_700_000_002.0, 0, &[("train/approx_kl", -1e-3)]).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, FROM_PYTHON);
    }

    #[test]
    fn a_resumed_file_equals_one_written_in_one_go() {
        let mut whole = Vec::new();
        let mut file = EventFile::new(&mut whole, 1.5).unwrap();
        file.scalars(2.5, 1, &[("a", 1.0)]).unwrap();
        file.scalars(3.5, 2, &[("a", 2.0)]).unwrap();

        let mut parts = Vec::new();
        EventFile::new(&mut parts, 1.5).unwrap().scalars(2.5, 1, &[("a", 1.0)]).unwrap();
        EventFile::continue_from(&mut parts).scalars(3.5, 2, &[("a", 2.0)]).unwrap();
        assert_eq!(parts, whole);
    }

    #[test]
    fn written_events_can_be_read_back() {
        let long_tag = "x".repeat(300); // its length takes two bytes, and so do the lengths around it
        let values = [("rollout/ep_len_mean", 499.5), ("größe", f32::MIN_POSITIVE), (long_tag.as_str(), f32::NEG_INFINITY), ("", -0.0)];
        let mut bytes = Vec::new();
        let mut file = EventFile::new(&mut bytes, 1.25).unwrap();
        file.scalars(2.5, u64::from(u32::MAX) + 1, &values).unwrap();
        file.scalars(3.0, 7, &[]).unwrap();

        let events = read_file(&bytes);
        assert_eq!(events.len(), 3);
        assert_eq!(events[0], Event { wall_time: 1.25, step: 0, version: "brain.Event:2".into(), values: vec![] });
        let expected = values.iter().map(|&(tag, value)| (tag.to_owned(), value.to_bits())).collect();
        assert_eq!(events[1], Event { wall_time: 2.5, step: 1 << 32, version: String::new(), values: expected });
        assert_eq!(events[2], Event { wall_time: 3.0, step: 7, version: String::new(), values: vec![] });
    }

    #[test]
    fn file_names_are_those_that_tensorboard_looks_for() {
        let name = file_name(1_700_000_000);
        assert!(name.starts_with("events.out.tfevents.1700000000.") && name.ends_with(".gradus") && name.len() > 38, "{name}");
    }

    // An independent reader. Of the tested functions it uses only the checksums.

    #[derive(Debug, Default, PartialEq)]
    struct Event {
        wall_time: f64,
        step: u64,
        version: String,
        values: Vec<(String, u32)>,
    }

    enum Field<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (head, tail) = bytes.split_at(count);
        *bytes = tail;
        head
    }

    fn read_varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = take(bytes, 1)[0];
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn read_fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = read_varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(read_varint(&mut bytes)),
                1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = read_varint(&mut bytes) as usize;
                    Field::Bytes(take(&mut bytes, length))
                }
                5 => Field::Number(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()).into()),
                other => panic!("wire type: expected 0, 1, 2 or 5, got {other}"),
            };
            fields.push((key >> 3, field));
        }
        fields
    }

    fn read_value(bytes: &[u8]) -> (String, u32) {
        match read_fields(bytes)[..] {
            [(1, Field::Bytes(tag)), (2, Field::Number(value))] => (String::from_utf8(tag.to_vec()).unwrap(), value as u32),
            _ => panic!("a value is a tag and a number"),
        }
    }

    fn read_event(bytes: &[u8]) -> Event {
        let mut event = Event::default();
        for field in read_fields(bytes) {
            match field {
                (1, Field::Number(bits)) => event.wall_time = f64::from_bits(bits),
                (2, Field::Number(step)) => event.step = step,
                (3, Field::Bytes(version)) => event.version = String::from_utf8(version.to_vec()).unwrap(),
                (5, Field::Bytes(summary)) => {
                    for (number, value) in read_fields(summary) {
                        match value {
                            Field::Bytes(value) if number == 1 => event.values.push(read_value(value)),
                            _ => panic!("summary: expected values only, got field {number}"),
                        }
                    }
                }
                (number, _) => panic!("event: expected fields 1, 2, 3 and 5, got field {number}"),
            }
        }
        event
    }

    fn read_file(mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            let length = take(&mut bytes, 8);
            assert_eq!(take(&mut bytes, 4), masked(crc32c(length)).to_le_bytes());
            let payload = take(&mut bytes, u64::from_le_bytes(length.try_into().unwrap()) as usize);
            assert_eq!(take(&mut bytes, 4), masked(crc32c(payload)).to_le_bytes());
            events.push(read_event(payload));
        }
        events
    }
}
