package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// node is a node of a plan, with its actual figures.
type node struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Index   string  `json:"Index Name"`
	Rows    float64 `json:"Actual Rows"` // per loop, like the removed rows
	Removed float64 `json:"Rows Removed by Filter"`
	Recheck float64 `json:"Rows Removed by Index Recheck"`
	Loops   float64 `json:"Actual Loops"`
	Plans   []node  `json:"Plans"`
}

// read returns how many rows the node has read.
func (n node) read() float64 { return (n.Rows + n.Removed + n.Recheck) * n.Loops }

func (n node) walk(visit func(node)) {
	visit(n)
	for _, p := range n.Plans {
		p.walk(visit)
	}
}

// plan is the root of a plan.
type plan struct {
	Plan          node    `json:"Plan"`
	ExecutionTime float64 `json:"Execution Time"`
}

// brief names the nodes of the plan that read tables.
func (p plan) brief() string {
	var parts []string
	p.Plan.walk(func(n node) {
		if n.Loops > 0 && (n.Table != "" || n.Index != "") {
			parts = append(parts, fmt.Sprintf("%s %s%s (%.0f)", n.Type, n.Table, strings.TrimSuffix("."+n.Index, "."), n.read()))
		}
	})
	return strings.Join(parts, "; ")
}

// errExplained ends every call of an explainer after its statement was explained.
var errExplained = errors.New("explained")

// explainer is a db.DBTX that keeps the plan of its statement.
type explainer struct {
	conn *pgx.Conn
	uses int // executions of the statement; the last plan is kept
	last plan
}

// settled is the number of executions of a prepared statement after which PostgreSQL has chosen
// between plans for the arguments and one plan for all.
const settled = 7

func (e *explainer) explain(ctx context.Context, sql string, args []any) error {
	if _, err := e.conn.Exec(ctx, "PREPARE explained AS "+sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	defer e.conn.Exec(ctx, "DEALLOCATE explained")
	params := make([]string, len(args))
	args = slices.Clone(args)
	for i := range args {
		params[i] = fmt.Sprintf("$%d", i+1)
		if ids, ok := args[i].([]uuid.UUID); ok { // the simple protocol does not encode their type
			args[i] = "{" + strings.Trim(fmt.Sprint(ids), "[]") + "}"
		}
	}
	execute := "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained"
	if len(args) > 0 {
		execute += "(" + strings.Join(params, ", ") + ")"
	}
	for range e.uses {
		var text []byte
		if err := e.conn.QueryRow(ctx, execute, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...).Scan(&text); err != nil {
			return err
		}
		var plans []plan
		if err := json.Unmarshal(text, &plans); err != nil {
			return err
		}
		e.last = plans[0]
	}
	return errExplained
}

func (e *explainer) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, e.explain(ctx, sql, args)
}

func (e *explainer) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return nil, e.explain(ctx, sql, args)
}

func (e *explainer) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return failed{e.explain(ctx, sql, args)}
}

type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

// explain returns the plan of a query.
func explain(t testing.TB, conn *pgx.Conn, q query) plan {
	t.Helper()
	e := &explainer{conn: conn, uses: settled}
	if q.fresh {
		e.uses = 1
	}
	if err := q.run(t.Context(), e); !errors.Is(err, errExplained) {
		t.Fatalf("%s: %v", q.name, err)
	}
	return e.last
}
