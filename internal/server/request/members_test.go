package request_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

func TestNamesAppearOnceInAnObject(t *testing.T) {
	t.Parallel()
	many := objectOf(40)
	for body, twice := range map[string]string{
		`{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}`:                   "",
		`{"a":"a","b":["a","b",{"b":"a,\"b\":{"}],"c\"":"}","c":"{"}`: "",
		`{"a":{"x":1},"b":{"y":1},"c":{"x":1,"y":1}}`:                 "",
		`{"a":1,"A":1,"ä":1,"\u00c4":1}`:                              "",
		`{ "a" : 1 , "b" : 1 , "a" : 1 }`:                             "a",
		`{"a":1,"\u0061":1}`:                                          "a",
		`{"a\\":1,"a\u005c":1}`:                                       `a\\`,
		`{"x":[[{"a":1},{"b":1,"c":{},"b":1}]]}`:                      "b",
		`{"x":{"y":[1,{"z":2}],"w":{"y":1}},"x":1}`:                   "x",
		strings.TrimSuffix(many, "}") + `,"f7":1}`:                    "f7",
		strings.TrimSuffix(many, "}") + `,"f33":1}`:                   "f33",
		strings.TrimSuffix(many, "}") + `,"f40":{"f33":1}}`:           "",
	} {
		_, err := request.Object([]byte(body))
		switch f := fault.From(err); {
		case twice == "" && err != nil:
			t.Errorf("%s: %v", body, err)
		case twice != "" && (f == nil || f.Code != fault.InvalidJSON || !strings.Contains(f.Message, `"`+twice+`" appears twice`)):
			t.Errorf("%s: %v", body, err)
		}
	}
}

// objectOf returns an object with n members.
func objectOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"f%d":1`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// TestBodiesHoldABoundedNumberOfValues checks the limit on values: without it, a megabyte of short
// members took half a second to reject, and eight took eleven.
func TestBodiesHoldABoundedNumberOfValues(t *testing.T) {
	t.Parallel()
	array := func(n int) string { return `{"a":[` + strings.Repeat("1,", n-1) + `1]}` }
	for name, c := range map[string]struct{ body, want string }{
		"members":          {objectOf(request.MaxMembers), ""},
		"too many members": {objectOf(request.MaxMembers + 1), "more than 10000 members"},
		"nested members":   {`{"a":[{"b":` + objectOf(request.MaxMembers+1) + `}]}`, "more than 10000 members"},
		"values":           {array(request.MaxValues), ""},
		"too many values":  {array(request.MaxValues + 1), "more than 200000 values"},
		"of many objects":  {`{"a":[` + strings.Repeat(`{"b":1,"c":2},`, request.MaxValues/2) + `1]}`, "more than 200000 values"},
	} {
		_, err := request.Object([]byte(c.body))
		if f := fault.From(err); (err == nil) != (c.want == "") || f != nil && (f.Code != fault.InvalidJSON ||
			!strings.Contains(f.Message, c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkObject parses a body of 8 MiB with as many members as possible, in objects of 10,000.
func BenchmarkObject(b *testing.B) {
	body := []byte(`{"a":[` + strings.TrimSuffix(strings.Repeat(objectOf(request.MaxMembers-1)+",", 8<<20/100_000), ",") + `]}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		_, _ = request.Object(body)
	}
}
