package chain

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// The kinds of links.
const (
	linkRows    = "rows"    // events of a session, after those of the link before
	linkErased  = "erased"  // all events of a session that was erased; it replaces the links before
	linkDropped = "dropped" // a partition of the log that retention has dropped
)

// link is one row of chain_links.
type link struct {
	number             int64
	kind               string
	session            uuid.UUID // uuid.Nil for linkDropped
	afterSeq, afterOrd int64
	lastSeq, lastOrd   int64
	lastAt             time.Time
	entries, salt      []byte
	digest             []byte
	detail             string
	upto, at           time.Time
	hash               []byte
	key                string
	signature          []byte
}

// computeHash returns the hash of a link. previous is the hash of the link before it, before that of
// the session's link before it; nil: there is none.
func (l *link) computeHash(previous, before []byte) []byte {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		h.Write(b)
	}
	number := func(n int64) { field(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	field([]byte("parley link v1"))
	field(previous)
	field(before)
	number(l.number)
	field([]byte(l.kind))
	field(l.session[:])
	for _, n := range []int64{l.afterSeq, l.afterOrd, l.lastSeq, l.lastOrd} {
		number(n)
	}
	number(l.lastAt.UnixMicro())
	field(l.digest)
	field([]byte(l.detail))
	number(l.upto.UnixMicro())
	number(l.at.UnixMicro())
	field([]byte(l.key))
	return h.Sum(nil)
}

// signedText is what the signature of a link, and so of a head, covers.
func signedText(number int64, hash []byte) []byte {
	text := append([]byte("parley head v1\x00"), binary.BigEndian.AppendUint64(nil, uint64(number))...)
	return append(text, hash...)
}

// closeLink computes hash and signature.
func (l *link) closeLink(previous, before []byte, key signingKey) {
	sum := sha256.Sum256(l.entries)
	l.digest, l.key = sum[:], key.id
	l.hash = l.computeHash(previous, before)
	l.signature = ed25519.Sign(key.private, signedText(l.number, l.hash))
}
