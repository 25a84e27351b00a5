//! ZIP archives byte by byte, so that each byte can be wrong. Nothing is compressed: a deflated file is one stored block.

/// What one of the two places says of a file.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) packed: u32,
    pub(super) size: u32,
    pub(super) name: Vec<u8>,
    pub(super) extra: Vec<u8>,
}

/// A file, as its header and the directory speak of it.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) local: Said,
    pub(super) central: Said,
    pub(super) data: Vec<u8>,
    pub(super) attributes: u32,
    pub(super) comment: Vec<u8>,
    /// Whether the directory has it at all.
    pub(super) listed: bool,
}

impl Entry {
    /// A file as it should be, stored.
    pub(super) fn stored(name: &str, bytes: &[u8]) -> Entry {
        let size = u32::try_from(bytes.len()).unwrap();
        let said = Said {
            flags: 0,
            method: 0,
            crc: crc(bytes),
            packed: size,
            size,
            name: name.as_bytes().to_vec(),
            extra: Vec::new(),
        };
        Entry {
            local: said.clone(),
            central: said,
            data: bytes.to_vec(),
            attributes: 0,
            comment: Vec::new(),
            listed: true,
        }
    }

    /// The same file, deflated.
    pub(super) fn deflated(name: &str, bytes: &[u8]) -> Entry {
        let mut entry = Entry::stored(name, bytes);
        let length = u16::try_from(bytes.len()).unwrap();
        entry.data = [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), bytes].concat();
        let packed = u32::try_from(entry.data.len()).unwrap();
        entry.both(|said| (said.method, said.packed) = (8, packed));
        entry
    }

    /// Changes what both places say.
    pub(super) fn both(&mut self, change: impl Fn(&mut Said)) {
        change(&mut self.local);
        change(&mut self.central);
    }
}

/// An archive.
#[derive(Clone, Default)]
pub(super) struct Zip {
    pub(super) entries: Vec<Entry>,
    /// Bytes between the files and the directory.
    pub(super) between: Vec<u8>,
    pub(super) comment: Vec<u8>,
    /// Whether the directory has the files in another order.
    pub(super) backwards: bool,
    /// What the record for large archives says of the number of files, where there is one.
    pub(super) large: Option<u64>,
    /// What is said about where the archive starts.
    pub(super) shift: u32,
}

impl Zip {
    pub(super) fn of(files: &[(String, Vec<u8>)]) -> Zip {
        let entries = files.iter().map(|(name, bytes)| Entry::stored(name, bytes)).collect();
        Zip { entries, ..Zip::default() }
    }

    pub(super) fn entry(&mut self, name: &str) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.local.name == name.as_bytes()).unwrap()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut directory = Vec::new();
        for entry in &self.entries {
            let offset = u32::try_from(out.len()).unwrap() + self.shift;
            let Said { name, extra, .. } = &entry.local;
            out.extend(b"PK\x03\x04\x14\x00");
            out.extend(fixed(&entry.local));
            out.extend([&name[..], extra, &entry.data].concat());
            let Said { name, extra, .. } = &entry.central;
            let mut listed = b"PK\x01\x02\x14\x03\x14\x00".to_vec();
            listed.extend(fixed(&entry.central));
            listed.extend(short(entry.comment.len()));
            listed.extend([0; 4]);
            listed.extend(entry.attributes.to_le_bytes());
            listed.extend(offset.to_le_bytes());
            listed.extend([&name[..], extra, &entry.comment].concat());
            if entry.listed {
                directory.push(listed);
            }
        }
        if self.backwards {
            directory.reverse();
        }
        out.extend(&self.between);
        let count = u16::try_from(directory.len()).unwrap();
        let (offset, directory) = (out.len() as u64 + u64::from(self.shift), directory.concat());
        out.extend(&directory);
        let size = directory.len() as u64;
        if let Some(large) = self.large {
            let at = out.len() as u64;
            out.extend(b"PK\x06\x06");
            out.extend(44u64.to_le_bytes());
            out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend([large, large, size, offset].map(u64::to_le_bytes).concat());
            out.extend(b"PK\x06\x07\0\0\0\0");
            out.extend(at.to_le_bytes());
            out.extend(1u32.to_le_bytes());
        }
        out.extend(b"PK\x05\x06\0\0\0\0");
        out.extend([count, count].map(u16::to_le_bytes).concat());
        out.extend([size, offset].map(|number| u32::try_from(number).unwrap().to_le_bytes()).concat());
        out.extend(short(self.comment.len()));
        out.extend(&self.comment);
        out
    }
}

/// What stands in the same order in both places: flags to the length of the extra fields.
fn fixed(said: &Said) -> Vec<u8> {
    let mut out = [said.flags, said.method].map(u16::to_le_bytes).concat();
    // Midnight, 1 January 1980.
    out.extend([0, 0, 0x21, 0]);
    out.extend([said.crc, said.packed, said.size].map(u32::to_le_bytes).concat());
    out.extend([short(said.name.len()), short(said.extra.len())].concat());
    out
}

fn short(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap().to_le_bytes()
}

/// CRC-32 as ZIP has it (ISO 3309), a bit at a time.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}
