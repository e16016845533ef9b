package main

var (
	swarm  = []string{"-chaos.seed", "1", "-chaos.seeds", "30"}
	points = []string{"-chaos.crashes", "6"}
)

const (
	batchFile  = "internal/eventlog/batch.go"
	followFile = "internal/eventlog/follow.go"
	listenFile = "internal/eventlog/listen.go"
	tailFile   = "internal/eventlog/tail.go"
	topicFile  = "internal/eventlog/topic.go"
	endsFile   = "internal/session/ends.go"
	endingFile = "internal/session/ending.go"
	loadFile   = "internal/session/load.go"
	startFile  = "internal/turn/start.go"
	callFile   = "internal/agent/call.go"
	txFile     = "internal/replan/tx.go"
	settings   = "internal/app/connection.go"
)

// noRecheck removes the comparison of the followed sessions with their rows, once a second. It hides
// every lost wake-up within two seconds.
var noRecheck = []edit{{tailFile, "if work.Written {", "if false && work.Written {"}}

// lateDone writes done in a transaction of its own.
func lateDone(turn string) string {
	return "s.Update(context.WithoutCancel(ctx), " + turn + ".SessionID, func(tx *Tx) error {\n" +
		"	_, err := tx.Append(context.WithoutCancel(ctx), " + turn + ".ID, event.Done{SessionID: " + turn + ".SessionID})\n" +
		"	return err\n})"
}

var mutants = []mutant{
	{
		name: "lock", bug: "a cursor on a sequence without the session's lock", run: "^TestChaos$", flags: swarm,
		edits: []edit{{batchFile, " ORDER BY id FOR NO KEY UPDATE SKIP LOCKED", " ORDER BY id"}},
	},
	{
		name: "fence", bug: "no epoch fence", run: "^TestChaos$", flags: swarm,
		edits: []edit{{batchFile, " AND l.epoch = w.epoch", ""}, {batchFile, "held[i+1] = ok && h.epoch == l.Epoch",
			"held[i+1] = ok && h.epoch > 0"}},
	},
	{
		name: "done", bug: "done in a second transaction", run: "^TestChaos$", flags: swarm,
		edits: []edit{
			{endingFile, "append(c.sum.endingEvents(e), event.Done{SessionID: tx.row.ID})", "c.sum.endingEvents(e)"},
			{endingFile, "	if err := tx.later.TurnEnd(ctx, turn); err != nil {",
				"	tx.OnCommit(func() { _ = tx." + lateDone("c.turn") + " })\n	if err := tx.later.TurnEnd(ctx, turn); err != nil {"},
			{endsFile, "		c.ended = true\n", "		c.ended = true\n		defer " + lateDone("c.turn") + "\n"},
			{endsFile, `"github.com/parley-server/parley/internal/eventlog"`, `"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"`},
		},
	},
	{
		name: "rerun", bug: "a tool call runs again after a crash", run: "^TestCrashPoints$/^shop$", flags: points,
		edits: []edit{{callFile, "if t == nil || !t.Spec().Idempotent {", "if t == nil {"}},
	},
	{
		name: "key", bug: "no Idempotency-Key", run: "^TestCrashPoints$/^accept.after_commit_before_reply$", flags: points,
		edits: []edit{
			{startFile, `if req.IdempotencyKey != "" { // before`, `if false { // before`},
			{startFile, "if req.IdempotencyKey != \"\" {\n			if err := tx.ReserveKey", "if false {\n			if err := tx.ReserveKey"},
		},
	},
	{
		name: "early", bug: "a message is accepted 25 ms before its commit", run: "^TestCrashPoints$/^accept.after_commit_before_reply$",
		flags: points,
		edits: []edit{
			{txFile, "	defer conn.Release()\n	if prepare", "	defer func() {\n		if err != nil {\n			conn.Release()\n		}\n	}()\n	if prepare"},
			{txFile, "		if !tx.closed {\n			_ = tx.Rollback(ctx)", "		if err != nil && !tx.closed {\n			_ = tx.Rollback(ctx)"},
			{txFile, "	return tx.Commit(ctx)\n}", "	go func() {\n		time.Sleep(25 * time.Millisecond)\n		_ = " +
				"tx.Commit(context.WithoutCancel(ctx))\n		conn.Release()\n	}()\n	return nil\n}"},
			{txFile, "	\"errors\"\n", "	\"errors\"\n	\"time\"\n"},
		},
	},
	{
		name: "replay", bug: "a replay begins one row too late", run: "^TestChaos$", flags: swarm,
		edits: []edit{{followFile, "p.from.Session, cursor, p.from.Since", "p.from.Session, cursor+1, p.from.Since"}},
	},
	{
		name: "subscribe", bug: "a reader registers 25 ms after its first read", run: "^TestChaos$", flags: swarm, beside: noRecheck,
		edits: []edit{{followFile, "				if last {\n",
			"				time.Sleep(25 * time.Millisecond)\n				select {\n				case <-wake:\n				default:\n				}\n				if last {\n"}},
	},
	{
		name: "push", bug: "readers get notified events without a look at the rows in between", run: "^TestChaos$", flags: swarm,
		edits: []edit{
			{topicFile, "joined := t.floor >= 0 && (t.ord > 0 && ev.Ord == t.ord+1 || t.ord == 0 && base == t.head)", "joined := t.floor >= 0"},
			{followFile, "if u.ord != 0 && ev.Ord != u.ord+1 {", "if false {"},
		},
	},
	{
		name: "catchup", bug: "no catch-up after the listener has connected again", run: "^TestProbes$", beside: noRecheck,
		edits: []edit{{listenFile, "	l.log.tailer.markAll() // notifications sent meanwhile were lost\n", ""}},
	},
	{
		name: "ping", bug: "the listener does not ping", run: "^TestProbes$", beside: noRecheck,
		edits: []edit{{listenFile, "if err := l.pingServer(ctx, conn); err != nil {", "if err := error(nil); err != nil {"}},
	},
	{
		name: "restart", bug: "a resumed turn begins with its first step", run: "^TestChaos$", flags: swarm,
		edits: []edit{
			{loadFile, "	if attempts < 2 {", "	l.Events = slices.DeleteFunc(l.Events, func(ev event.Event) bool { return ev.Kind == " +
				"event.KindReply })\n	if attempts < 2 {"},
			{loadFile, "	\"fmt\"\n", "	\"fmt\"\n	\"slices\"\n"},
		},
	},
	{
		name: "idle", bug: "no idle_in_transaction_session_timeout", run: "^TestLostTransaction$",
		edits: []edit{{settings, `{"idle_in_transaction_session_timeout", "5s"}`, `{"idle_in_transaction_session_timeout", "0"}`}},
	},
}
