package event

import "github.com/google/uuid"

// Place is a position in the conversation of a session: the end of a step of a turn. Step 0 is the
// turn's message, and negative steps are messages that the caller sent before it.
type Place struct {
	Turn uuid.UUID `json:"turn_id"`
	Step int       `json:"step"`
}

// Sent describes the request of a reply.
type Sent struct {
	// From is the first place in the request, if the turns before it are left out to fit the agent's
	// limit; nil: none is.
	From *Place `json:"from,omitempty"`
	// Masked is the place up to which the results of tools are left out; nil: none is.
	Masked *Place `json:"masked,omitempty"`
	// Estimate is the number of tokens that the request was thought to have, and Tokens the one that
	// the provider reported, 0 if it is not known.
	Estimate int64 `json:"estimate"`
	Tokens   int64 `json:"tokens,omitempty"`
	// Window is the limit of the turn's requests since the model rejected a longer one; 0: the model's.
	Window int `json:"window,omitempty"`
	// Partial is how many bytes of the reply's text the request contained: what was shown before an
	// interruption.
	Partial  int    `json:"partial,omitempty"`
	Setup    string `json:"setup,omitempty"`     // SHA-256 of the instructions and tools, which are stored under it
	FileText bool   `json:"file_text,omitempty"` // the texts of attached PDFs were in the request
}

// Compacted records that a summary stands for the oldest part of the conversation in the requests
// that follow. The message of the turn that wrote it stays.
type Compacted struct {
	Upto    Place  `json:"upto"`              // the last place that the summary covers
	Summary string `json:"summary,omitempty"` // "": the model gave none, so the part is left out
	// TokensBefore and TokensAfter estimate the size of the next request without and with it.
	TokensBefore int64  `json:"tokens_before"`
	TokensAfter  int64  `json:"tokens_after"`
	Model        string `json:"model"` // that wrote the summary
	Usage        Usage  `json:"usage"` // of the summary's request
	Window       int    `json:"window,omitempty"`
}
