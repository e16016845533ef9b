package request

import (
	"testing"

	"github.com/parley-server/parley/internal/fault"
)

// TestFieldsReadProtoJSON checks ProtoJSON: a field has two names, and an empty string counts as
// unset.
func TestFieldsReadProtoJSON(t *testing.T) {
	t.Parallel()
	const object = `{"task_id":"a","contextId":"","page_size":3,"pageSize":4,"gone":null}`
	for _, proto := range []bool{true, false} {
		f := Fields{Checks: new(Checks), ProtoJSON: proto}.Nested("/params", []byte(object))
		got := [...]any{f.String("taskId", 9), f.String("contextId", 9), f.Int("pageSize", 1, 1, 9), f.Has("gone")}
		want, params := [...]any{"a", "", 4, false}, []string{"/params/page_size"}
		if !proto {
			want, params = [...]any{"", "", 4, false}, []string{"/params/contextId"}
		}
		if got != want {
			t.Errorf("proto %t: %v", proto, got)
		}
		violations := fault.From(f.Err()).Detail.Violations
		if len(violations) != len(params) || violations[0].Param != params[0] {
			t.Errorf("proto %t: %+v", proto, violations)
		}
	}
}
