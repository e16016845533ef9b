package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"time"

	"github.com/google/uuid"
)

// row is an event of the log, as a digest covers it.
type row struct {
	session, turn uuid.UUID
	seq, ord      int64
	at            time.Time
	delta         bool
	kind          string
	data          []byte // the bytes that streams send
}

const digestSize = sha256.Size

type digest [digestSize]byte

// digestOf returns the digest of a row. The salt keeps it from revealing the content.
func (r *row) digestOf(salt []byte) (d digest) {
	head := make([]byte, 0, 96)
	head = append(head, "parley row v1\x00"...)
	head = append(head, r.session[:]...)
	head = append(head, r.turn[:]...)
	for _, n := range []int64{r.seq, r.ord, r.at.UnixMicro()} {
		head = binary.BigEndian.AppendUint64(head, uint64(n))
	}
	if r.delta {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	head = binary.BigEndian.AppendUint32(head, uint32(len(r.kind)))
	head = append(head, r.kind...)
	h := sha256.New()
	h.Write(salt)
	h.Write(head)
	h.Write(r.data)
	h.Sum(d[:0])
	return d
}

// hintSize is the size of the digest of one text delta within a run. It finds the delta that was
// changed; the digest of the run proves that one was.
const hintSize = 4

// entry is the digest of one record, or of a run of text deltas between two records: retention drops
// deltas earlier than records, and the digest of a run stays.
type entry struct {
	deltas int       // 0: a record
	ord    int64     // of the first row
	seq    int64     // of the last row
	at     time.Time // of the first row
	digest digest
	hints  []byte // one for each delta
}

// lastOrd is the ordinal of the last row.
func (e entry) lastOrd() int64 { return e.ord + int64(max(e.deltas, 1)) - 1 }

// entryWriter encodes the entries of rows, in the order of their seqs. An entry is
//
//	number of deltas · ordinals skipped · increase of seq · microseconds since the entry before ·
//	digest · hints
type entryWriter struct {
	salt   []byte
	out    []byte
	rows   int       // that were added
	newest time.Time // the time of the last one

	seq, ord, at int64 // of the last row; at of the first row of the last entry
	run          entry
	sum          hash.Hash // of the run's digests
}

func newEntryWriter(salt []byte, seq, ord int64) *entryWriter {
	return &entryWriter{salt: salt, seq: seq, ord: ord, newest: beginning}
}

func (w *entryWriter) addRow(r *row) {
	w.rows++
	w.newest = r.at
	d := r.digestOf(w.salt)
	if !r.delta {
		w.endRun()
		w.addEntry(entry{ord: r.ord, seq: r.seq, at: r.at, digest: d})
		return
	}
	if w.run.deltas > 0 && r.ord != w.run.lastOrd()+1 {
		w.endRun()
	}
	if w.run.deltas == 0 {
		w.run = entry{ord: r.ord, at: r.at}
		w.sum = sha256.New()
	}
	w.run.deltas++
	w.run.seq = r.seq
	w.run.hints = append(w.run.hints, d[:hintSize]...)
	w.sum.Write(d[:])
}

func (w *entryWriter) endRun() {
	if w.run.deltas == 0 {
		return
	}
	w.sum.Sum(w.run.digest[:0])
	w.addEntry(w.run)
	w.run = entry{}
}

func (w *entryWriter) addEntry(e entry) {
	at := e.at.UnixMicro()
	w.out = binary.AppendUvarint(w.out, uint64(e.deltas))
	w.out = binary.AppendVarint(w.out, e.ord-w.ord-1)
	w.out = binary.AppendVarint(w.out, e.seq-w.seq)
	w.out = binary.AppendVarint(w.out, at-w.at)
	w.out = append(w.out, e.digest[:]...)
	w.out = append(w.out, e.hints...)
	w.seq, w.ord, w.at = e.seq, e.lastOrd(), at
}

// finish returns the entries; seq and ord are then those of the last row.
func (w *entryWriter) finish() []byte {
	w.endRun()
	return w.out
}

var errEntries = errors.New("the entries are damaged")

// decodeEntries is the reverse of entryWriter.
func decodeEntries(data []byte, seq, ord int64) (all []entry, err error) {
	at := int64(0)
	for len(data) > 0 {
		var numbers [3]int64
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(len(data)) {
			return nil, errEntries
		}
		data = data[size:]
		for i := range numbers {
			v, size := binary.Varint(data)
			if size <= 0 {
				return nil, errEntries
			}
			numbers[i], data = v, data[size:]
		}
		hints := int(n) * hintSize
		if len(data) < digestSize+hints {
			return nil, errEntries
		}
		e := entry{deltas: int(n), ord: ord + numbers[0] + 1, seq: seq + numbers[1], at: time.UnixMicro(at + numbers[2]).UTC(),
			digest: digest(data[:digestSize]), hints: data[digestSize : digestSize+hints]}
		data = data[digestSize+hints:]
		all, seq, ord, at = append(all, e), e.seq, e.lastOrd(), e.at.UnixMicro()
	}
	return all, nil
}
