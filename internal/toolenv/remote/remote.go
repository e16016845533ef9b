// Package remote runs commands in the sandbox of another process, the runner, which has no database,
// no secret and no route to the internet. Client is the server's side, Runner the other.
//
// A command has a connection of its own: an HTTP/1.1 request with the shared token, upgraded to
// streams. On the first stream the server sends the command and the session's folder, and the runner
// sends the output, the outcome and the changes of the folder. The runner opens a stream for every
// connection of the command to its proxy. The server serves these as it serves a sandbox of its own,
// so placeholders are replaced in the server alone.
//
// It promises: Client.Run never waits for a peer that has died, is frozen or is cut off; an error
// reports whether the command can have run; a command ends when its server does; and a hostile runner
// reaches no folder and no credential but those of the commands that it was given.
package remote

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/yamux"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// Protocol is the version of the protocol. A server and a runner with different ones refuse each
// other.
const Protocol = 1

const (
	commandPath   = "/commands"
	healthPath    = "/healthz"
	upgradeName   = "parley-runner/"
	versionHeader = "Parley-Version"
	limitedHeader = "Parley-Limited" // whether the kernel limits the memory of commands
)

// The deadlines of a command. Both sides also notice within aliveEvery and aliveTime that the other
// does not answer.
const (
	reachTime   = 10 * time.Second // until a runner that restarts can be reached
	reachEvery  = 200 * time.Millisecond
	connectTime = 5 * time.Second  // for each of: to connect, the handshake of TLS
	answerTime  = 10 * time.Second // until the first answer
	queueTime   = 10 * time.Minute // until a place is free and the folder has arrived
	finishTime  = time.Minute      // after the command's own limit
	returnTime  = 5 * time.Minute  // until the changes of the folder have arrived
	aliveEvery  = 2 * time.Second
	aliveTime   = 10 * time.Second
	// killTime is how long a canceled command waits for the runner to confirm the end: longer than a
	// cancel call waits, shorter than a stopping server does.
	killTime = 2 * time.Second
)

const (
	maxOrder   = 1 << 20 // bytes of a command with its environment
	maxOutcome = 64 << 10
	// maxForwarded is how many connections of a command a runner forwards at once, and maxStreams how
	// many a server keeps in memory, with those that are closing.
	maxForwarded = 192
	maxStreams   = 512
)

// ErrLost is returned if the runner was lost after the command may have begun. Its effects outside
// the sandbox are unknown; the folder is as it was, or changed in part.
var ErrLost = errors.New("the runner was lost while it ran a command")

// order is the first frame of a connection.
type order struct {
	Workspace   uuid.UUID // places are shared fairly among workspaces
	Argv        []string
	Env         []string // with placeholders
	CA          []byte   // certificates, no key
	Proxy       bool
	Direct      bool
	Attachments bool
	Limits      sandbox.Limits
}

// outcome describes how a command ended.
type outcome struct {
	Failure  string `json:",omitempty"` // why it did not run
	Canceled bool   `json:",omitempty"`
	Exit     int
	Killed   string `json:",omitempty"`
	Took     time.Duration
	Refused  string   `json:",omitempty"` // why the changes of the folder are not returned
	Skipped  []string `json:",omitempty"` // names that are not returned
}

// muxConfig returns the settings of a connection's streams.
func muxConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = maxForwarded
	c.KeepAliveInterval, c.ConnectionWriteTimeout = aliveEvery, aliveTime
	c.StreamOpenTimeout, c.StreamCloseTimeout = 3*aliveTime, aliveTime
	c.LogOutput, c.Logger = nil, log.New(io.Discard, "", 0) // the ends of connections are reported by their users
	return c
}

// isToken compares tokens in a time that does not depend on them.
func isToken(given, token string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// protocolOf returns the version of an Upgrade header, or 0.
func protocolOf(upgrade string) int {
	text, ok := strings.CutPrefix(upgrade, upgradeName)
	if n, err := strconv.Atoi(text); ok && err == nil {
		return n
	}
	return 0
}
