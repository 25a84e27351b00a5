//! Reads records, before their place is checked.

use super::ahead::PayloadLine;
use super::{Verifier, WRITER_BYTES_MAX};
use crate::chain::Digest;
use crate::export::{
    EXPORT_FORMAT, EndRecord, ErasedRecord, ExportRecord, HeadRecord, PayloadRecord, SegmentRecord,
    read_record,
};
use crate::trust::check_origin;

/// A record that is not the first line.
pub(super) enum Record<'a> {
    Export,
    Segment(SegmentRecord<'a>),
    Head(HeadRecord),
    Payload((PayloadRecord<'a>, u64, Digest)),
    Erased(ErasedRecord),
    End(EndRecord),
}

impl Verifier<'_> {
    /// A record of this version of the format, at any place.
    pub(super) fn record<'a>(&self, kind: &str, line: &'a [u8]) -> Result<Record<'a>, String> {
        Ok(match kind {
            "export" => {
                check_origin(&read_record::<ExportRecord<'_>>(line)?.origin)?;
                Record::Export
            }
            "segment" => {
                let record: SegmentRecord<'_> = read_record(line)?;
                if record.writer.len() > WRITER_BYTES_MAX {
                    return Err(format!("the writer id has more than {WRITER_BYTES_MAX} bytes"));
                }
                Record::Segment(record)
            }
            "head" => Record::Head(read_record(line)?),
            "payload" => Record::Payload(PayloadLine(line).read()?),
            "erased" if self.erased.is_none() => {
                return Err(format!("a record `erased`, which `{EXPORT_FORMAT}` does not have"));
            }
            "erased" => Record::Erased(read_record(line)?),
            "end" => {
                let record: EndRecord = read_record(line)?;
                if record.erased.is_some() != self.erased.is_some() {
                    return Err(
                        "erased payloads are counted in version 2 of the format, and only there".to_owned()
                    );
                }
                Record::End(record)
            }
            other => return Err(format!("unknown record `{}`", other.escape_debug())),
        })
    }
}
