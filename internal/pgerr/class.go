package pgerr

// Class groups failures by what the caller can do about them.
type Class int

const (
	// Other is a mistake, or a failure that this table does not contain: a repeat fails again.
	Other Class = iota
	// Unavailable: the connection is missing, or the server is starting, stopping, read-only or out
	// of a resource. It passes without action by the caller.
	Unavailable
	// Contended: another transaction held a lock. An immediate repeat can succeed.
	Contended
	// TimedOut: a time limit has passed. A repeat can succeed.
	TimedOut
	// StalePlan: the schema changed under a prepared statement. A repeat succeeds on a new plan.
	StalePlan
	// UniqueViolation: the row exists.
	UniqueViolation
	// ForeignKeyViolation: a referenced row is missing or still in use.
	ForeignKeyViolation
	// DuplicateObject: the database, table or other object exists.
	DuplicateObject
	// UndefinedTable: the table does not exist, as before the first migration.
	UndefinedTable
	// Forbidden: the role lacks a privilege.
	Forbidden
	// TooLarge: the statement or a value exceeds PostgreSQL's limits.
	TooLarge
	// InvalidValue: the type of a value does not accept it.
	InvalidValue
	// QuotaExceeded: the workspace has used up its storage. The message is for the caller.
	QuotaExceeded
	// Superseded: the object was changed after the position that the change names.
	Superseded
)

const (
	featureNotSupported = "0A000"
	revalidate          = "RevalidateCachedQuery" // PostgreSQL's function that reports a stale plan
	diskFull            = "53100"
	resolutionUnknown   = "08007"
	completionUnknown   = "40003"
	readOnlyTransaction = "25006" // read_only_sql_transaction: a standby, or a former primary
	wrongState          = "55000" // object_not_in_prerequisite_state, as functions report during recovery
)

// states maps the SQLSTATEs that do not belong to the class of their first two characters.
var states = map[string]Class{
	featureNotSupported: StalePlan, // cached plan must not change result type
	"26000":             StalePlan, // invalid_sql_statement_name: the prepared statement was removed
	"23505":             UniqueViolation,
	"PQ001":             QuotaExceeded, // our own code, raised by storage_count
	"PQ002":             Superseded,    // our own code, raised by admin_log_write
	"23503":             ForeignKeyViolation,
	readOnlyTransaction: Unavailable,
	wrongState:          Unavailable,
	"25P03":             TimedOut, // idle_in_transaction_session_timeout
	"25P04":             TimedOut, // transaction_timeout
	"42P01":             UndefinedTable,
	"42501":             Forbidden,
	"42P04":             DuplicateObject,
	"42P06":             DuplicateObject,
	"42P07":             DuplicateObject,
	"42710":             DuplicateObject,
	"57014":             TimedOut, // query_canceled, by statement_timeout among others
}

// prefixes maps whole groups of SQLSTATEs to their classes.
var prefixes = map[string]Class{
	"08": Unavailable,  // connection exceptions
	"22": InvalidValue, // data exceptions
	"40": Contended,    // serialization failures, deadlocks
	"53": Unavailable,  // insufficient resources: disk, memory, connections
	"54": TooLarge,     // program limit exceeded
	"55": Contended,    // object not in the required state, or in use
	"57": Unavailable,  // operator intervention: shutdown, restart, recovery
	"58": Unavailable,  // system errors outside PostgreSQL, such as I/O errors
}

// OfState returns the class of a SQLSTATE.
func OfState(sqlstate string) Class {
	if c, ok := states[sqlstate]; ok {
		return c
	}
	return prefixes[sqlstate[:min(2, len(sqlstate))]]
}
