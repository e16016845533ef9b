package fault

import "net/http"

// Code is the closed set of machine-readable failures of the public API.
type Code string

const (
	InvalidJSON             Code = "INVALID_JSON"
	InvalidRequestBody      Code = "INVALID_REQUEST"
	UnknownSkill            Code = "UNKNOWN_SKILL"
	UnknownAgent            Code = "UNKNOWN_AGENT"
	UnknownAgentVersion     Code = "UNKNOWN_AGENT_VERSION"
	InvalidSkillInput       Code = "INVALID_SKILL_INPUT"
	UnknownSecret           Code = "UNKNOWN_SECRET"
	InvalidResponseSchema   Code = "INVALID_RESPONSE_SCHEMA"
	InvalidCursor           Code = "INVALID_CURSOR"
	InvalidCallbackURL      Code = "INVALID_CALLBACK_URL"
	InvalidAllowlistPattern Code = "INVALID_ALLOWLIST_PATTERN"
	InvalidOriginURL        Code = "INVALID_ORIGIN_URL"
	MissingAPIKey           Code = "MISSING_API_KEY"
	InvalidAPIKey           Code = "INVALID_API_KEY"
	InsufficientScope       Code = "INSUFFICIENT_SCOPE"
	ApproverIsSender        Code = "APPROVER_IS_SENDER"
	OriginNotAllowed        Code = "ORIGIN_NOT_ALLOWED"
	TokenRestricted         Code = "TOKEN_RESTRICTED"
	WorkspaceNotFound       Code = "WORKSPACE_NOT_FOUND"
	SessionNotFound         Code = "SESSION_NOT_FOUND"
	ApprovalNotFound        Code = "APPROVAL_NOT_FOUND"
	ToolCallNotFound        Code = "TOOL_CALL_NOT_FOUND"
	FileNotFound            Code = "FILE_NOT_FOUND"
	CallbackNotFound        Code = "CALLBACK_NOT_FOUND"
	ObjectNotFound          Code = "OBJECT_NOT_FOUND"
	RouteNotFound           Code = "NOT_FOUND"
	MethodNotAllowed        Code = "METHOD_NOT_ALLOWED"
	NotAcceptable           Code = "NOT_ACCEPTABLE"
	UnsupportedMediaType    Code = "UNSUPPORTED_MEDIA_TYPE"
	UnsupportedFileType     Code = "UNSUPPORTED_FILE_TYPE"
	TurnInProgress          Code = "TURN_IN_PROGRESS"
	ApprovalAlreadyDecided  Code = "APPROVAL_ALREADY_DECIDED"
	ToolCallAnswered        Code = "TOOL_CALL_ANSWERED"
	ObjectConflict          Code = "OBJECT_CONFLICT"
	PreconditionFailed      Code = "PRECONDITION_FAILED"
	ApprovalExpired         Code = "APPROVAL_EXPIRED"
	ToolCallExpired         Code = "TOOL_CALL_EXPIRED"
	FileExpired             Code = "FILE_EXPIRED"
	PayloadTooLarge         Code = "PAYLOAD_TOO_LARGE"
	FileTooLarge            Code = "FILE_TOO_LARGE"
	RangeNotSatisfiable     Code = "RANGE_NOT_SATISFIABLE"
	IdempotencyKeyReused    Code = "IDEMPOTENCY_KEY_REUSED"
	FileRejected            Code = "FILE_REJECTED"
	RateLimited             Code = "RATE_LIMITED"
	ConcurrencyLimit        Code = "CONCURRENCY_LIMIT"
	QueueFull               Code = "QUEUE_FULL"
	BudgetExceeded          Code = "BUDGET_EXCEEDED"
	Internal                Code = "INTERNAL"
	Unavailable             Code = "UNAVAILABLE"
	AgentsStopped           Code = "AGENTS_STOPPED"
)

type class struct {
	status int
	typ    Type
}

var classes = map[Code]class{
	InvalidJSON:             {http.StatusBadRequest, InvalidRequest},
	InvalidRequestBody:      {http.StatusBadRequest, InvalidRequest},
	UnknownSkill:            {http.StatusBadRequest, InvalidRequest},
	UnknownAgent:            {http.StatusBadRequest, InvalidRequest},
	UnknownAgentVersion:     {http.StatusBadRequest, InvalidRequest},
	InvalidSkillInput:       {http.StatusBadRequest, InvalidRequest},
	UnknownSecret:           {http.StatusBadRequest, InvalidRequest},
	InvalidResponseSchema:   {http.StatusBadRequest, InvalidRequest},
	InvalidCursor:           {http.StatusBadRequest, InvalidRequest},
	InvalidCallbackURL:      {http.StatusBadRequest, InvalidRequest},
	InvalidAllowlistPattern: {http.StatusBadRequest, InvalidRequest},
	InvalidOriginURL:        {http.StatusBadRequest, InvalidRequest},
	MissingAPIKey:           {http.StatusUnauthorized, Authentication},
	InvalidAPIKey:           {http.StatusUnauthorized, Authentication},
	InsufficientScope:       {http.StatusForbidden, Permission},
	ApproverIsSender:        {http.StatusForbidden, Permission},
	OriginNotAllowed:        {http.StatusForbidden, Permission},
	TokenRestricted:         {http.StatusForbidden, Permission},
	WorkspaceNotFound:       {http.StatusNotFound, NotFound},
	SessionNotFound:         {http.StatusNotFound, NotFound},
	ApprovalNotFound:        {http.StatusNotFound, NotFound},
	ToolCallNotFound:        {http.StatusNotFound, NotFound},
	FileNotFound:            {http.StatusNotFound, NotFound},
	CallbackNotFound:        {http.StatusNotFound, NotFound},
	ObjectNotFound:          {http.StatusNotFound, NotFound},
	RouteNotFound:           {http.StatusNotFound, NotFound},
	MethodNotAllowed:        {http.StatusMethodNotAllowed, InvalidRequest},
	NotAcceptable:           {http.StatusNotAcceptable, InvalidRequest},
	UnsupportedMediaType:    {http.StatusUnsupportedMediaType, InvalidRequest},
	UnsupportedFileType:     {http.StatusUnsupportedMediaType, InvalidRequest},
	TurnInProgress:          {http.StatusConflict, Conflict},
	ApprovalAlreadyDecided:  {http.StatusConflict, Conflict},
	ToolCallAnswered:        {http.StatusConflict, Conflict},
	ObjectConflict:          {http.StatusConflict, Conflict},
	PreconditionFailed:      {http.StatusPreconditionFailed, Conflict},
	ApprovalExpired:         {http.StatusGone, Conflict},
	ToolCallExpired:         {http.StatusGone, Conflict},
	FileExpired:             {http.StatusGone, NotFound},
	PayloadTooLarge:         {http.StatusRequestEntityTooLarge, InvalidRequest},
	FileTooLarge:            {http.StatusRequestEntityTooLarge, InvalidRequest},
	RangeNotSatisfiable:     {http.StatusRequestedRangeNotSatisfiable, InvalidRequest},
	IdempotencyKeyReused:    {http.StatusUnprocessableEntity, Idempotency},
	FileRejected:            {http.StatusUnprocessableEntity, InvalidRequest},
	RateLimited:             {http.StatusTooManyRequests, RateLimit},
	ConcurrencyLimit:        {http.StatusTooManyRequests, RateLimit},
	QueueFull:               {http.StatusTooManyRequests, RateLimit},
	BudgetExceeded:          {http.StatusTooManyRequests, RateLimit},
	Internal:                {http.StatusInternalServerError, API},
	Unavailable:             {http.StatusServiceUnavailable, API},
	AgentsStopped:           {http.StatusServiceUnavailable, API},
}

// Codes returns every declared code.
func Codes() []Code {
	codes := make([]Code, 0, len(classes))
	for c := range classes {
		codes = append(codes, c)
	}
	return codes
}

// Status returns the HTTP status of the code.
func (c Code) Status() int {
	if k, ok := classes[c]; ok {
		return k.status
	}
	return http.StatusInternalServerError
}

// Type returns the group of the code.
func (c Code) Type() Type {
	if k, ok := classes[c]; ok {
		return k.typ
	}
	return API
}
