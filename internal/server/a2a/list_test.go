package a2a_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// page is a page of tasks.
type page struct {
	Tasks         []*task
	NextPageToken *string
	PageSize      int
	TotalSize     int
}

func (c *caller) list(params string) page {
	c.t.Helper()
	var p page
	if err := json.Unmarshal(c.ask("ListTasks", params), &p); err != nil || p.NextPageToken == nil {
		c.t.Fatal(err)
	}
	return p
}

func (p page) ids() []string {
	var ids []string
	for _, t := range p.Tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

func TestTasksAreListed(t *testing.T) {
	t.Parallel()
	c := start(t, nil).speaks(t, "1.0")
	done := c.say("@say One.")
	second := c.say("@say Two.", fmt.Sprintf(`"contextId":%q`, done.ContextID))
	failed := c.say("@refuse")
	waits := c.say(asking)
	works := c.read(c.ask("SendMessage", c.params(unique(), text(held), c.atOnce())))
	c.Gate.Await(t)
	lined := c.read(c.ask("SendMessage", c.params(unique(), text("@say Later."), c.atOnce(), fmt.Sprintf(`"contextId":%q`, works.ContextID),
		`"metadata":{"multitask_strategy":"enqueue"}`)))

	all := c.list(`{}`)
	want := []string{lined.ID, works.ID, waits.ID, failed.ID, second.ID, done.ID}
	if got := all.ids(); !slices.Equal(sorted(got), sorted(want)) || all.TotalSize != 6 || all.PageSize != 50 || *all.NextPageToken != "" {
		t.Errorf("%+v", all)
	}
	if !slices.IsSortedFunc(all.Tasks, func(a, b *task) int { return strings.Compare(b.Status.Timestamp, a.Status.Timestamp) }) {
		t.Errorf("%v", all.ids())
	}
	for _, one := range all.Tasks {
		if one.Artifacts != nil || one.History != nil {
			t.Errorf("%+v", one)
		}
	}
	var paged []string
	for params := `{"pageSize":2}`; ; {
		p := c.list(params)
		if paged = append(paged, p.ids()...); p.TotalSize != 6 || p.PageSize != 2 {
			t.Errorf("%+v", p)
		}
		if *p.NextPageToken == "" {
			break
		}
		params = fmt.Sprintf(`{"pageSize":2,"pageToken":%q}`, *p.NextPageToken)
	}
	if !slices.Equal(paged, all.ids()) {
		t.Errorf("%v, want %v", paged, all.ids())
	}
	for params, want := range map[string][]string{
		fmt.Sprintf(`{"contextId":%q}`, done.ContextID):                                                  {second.ID, done.ID},
		fmt.Sprintf(`{"contextId":%q,"status":"TASK_STATE_FAILED"}`, done.ContextID):                     nil,
		`{"contextId":"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"}`:                                           nil,
		`{"contextId":"nobody's"}`:                                                                       nil,
		`{"status":"TASK_STATE_SUBMITTED"}`:                                                              {lined.ID},
		`{"status":"TASK_STATE_WORKING"}`:                                                                {works.ID},
		`{"status":"TASK_STATE_INPUT_REQUIRED"}`:                                                         {waits.ID},
		`{"status":"TASK_STATE_COMPLETED"}`:                                                              {second.ID, done.ID},
		`{"status":"TASK_STATE_FAILED"}`:                                                                 {failed.ID},
		`{"status":"TASK_STATE_CANCELED"}`:                                                               nil,
		`{"status":"TASK_STATE_REJECTED"}`:                                                               nil,
		`{"status":"TASK_STATE_AUTH_REQUIRED"}`:                                                          nil,
		`{"statusTimestampAfter":"2999-01-31T12:00:00Z"}`:                                                nil,
		fmt.Sprintf(`{"statusTimestampAfter":%q,"status":"TASK_STATE_FAILED"}`, failed.Status.Timestamp): {failed.ID},
	} {
		if got := c.list(params); !slices.Equal(got.ids(), want) || got.TotalSize != len(want) {
			t.Errorf("%s: %v of %d, want %v", params, got.ids(), got.TotalSize, want)
		}
	}
	whole := c.list(fmt.Sprintf(`{"contextId":%q,"includeArtifacts":true,"historyLength":5}`, done.ContextID))
	if whole.Tasks[0].said("answer") != "Two." || len(whole.Tasks[0].History) != 1 {
		t.Errorf("%+v", whole.Tasks[0])
	}
	if empty := c.list(`{"status":"TASK_STATE_FAILED","includeArtifacts":true}`); empty.Tasks[0].Artifacts == nil {
		t.Errorf("%+v", empty.Tasks[0])
	}
	c.Gate.Leave <- struct{}{}
}

// TestListsAreAskedForStrangely checks that an invalid list parameter is rejected with its name,
// and that every valid one is accepted, however unusual.
func TestListsAreAskedForStrangely(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.speaks(t, "1.0")
	for range 3 {
		c.say("@say Hi.")
	}
	token := *c.list(`{"pageSize":1}`).NextPageToken
	_, key := s.Another(t)
	foreign := s.speaks(t, "1.0").by(key)
	for range 2 {
		foreign.say("@say Hi.")
	}
	theirs := *foreign.list(`{"pageSize":1}`).NextPageToken
	for params, place := range map[string]string{
		`{"pageSize":0}`: "pageSize", `{"pageSize":-1}`: "pageSize", `{"pageSize":101}`: "pageSize", `{"pageSize":"x"}`: "pageSize",
		`{"pageSize":1.5}`:   "pageSize",
		`{"pageSize":1e400}`: "pageSize", `{"pageSize":99999999999999999999}`: "pageSize", `{"pageSize":[1]}`: "pageSize",
		`{"status":"TASK_STATE_RUNNING"}`: "status", `{"status":"completed"}`: "status", `{"status":7}`: "status",
		`{"status":["TASK_STATE_FAILED"]}`: "status",
		`{"pageToken":"x"}`:                "pageToken", `{"pageToken":7}`: "pageToken", `{"pageToken":"' OR 1=1 --"}`: "pageToken",
		fmt.Sprintf(`{"pageToken":%q}`, token+"x"):                 "pageToken",
		fmt.Sprintf(`{"pageToken":%q}`, strings.Repeat("A", 5000)): "pageToken", fmt.Sprintf(`{"pageToken":%q}`, theirs): "pageToken",
		`{"pageToken":"a\u0000b"}`: "pageToken",
		`{"historyLength":-1}`:     "historyLength", `{"historyLength":"all"}`: "historyLength", `{"historyLength":3000000000}`: "historyLength",
		`{"statusTimestampAfter":"yesterday"}`: "statusTimestampAfter", `{"statusTimestampAfter":1767225600}`: "statusTimestampAfter",
		`{"statusTimestampAfter":"2026-01-31"}`:           "statusTimestampAfter",
		`{"statusTimestampAfter":"2026-13-31T12:00:00Z"}`: "statusTimestampAfter",
		`{"includeArtifacts":"yes"}`:                      "includeArtifacts", `{"includeArtifacts":1}`: "includeArtifacts",
		`{"contextId":7}`:          "contextId",
		`{"contextId":"a\u0000b"}`: "contextId",
	} {
		if e := c.refused(-32602, "ListTasks", params); !slices.Equal(slices.Compact(e.places(t)), []string{place}) {
			t.Errorf("%s: %s %s", params, e.Message, e.Data)
		}
	}
	for params, want := range map[string]int{
		`{"pageSize":100}`: 3, `{"pageSize":1.0}`: 3,
		`{"pageSize":null,"pageToken":"","status":"TASK_STATE_UNSPECIFIED","contextId":"","statusTimestampAfter":""}`: 3,
		`{"historyLength":0}`: 3, `{"historyLength":2147483647}`: 3, `{"tenant":"","unknown":{}}`: 3, `{"contextId":"' OR 1=1 --"}`: 0,
		`{"statusTimestampAfter":"0001-01-01T00:00:00Z"}`: 3, `{"statusTimestampAfter":"9999-12-31T23:59:59.999999999Z"}`: 0,
		`{"statusTimestampAfter":"2026-01-31T12:00:00.123456789+14:00"}`: 3, `{"page_size":2,"include_artifacts":true}`: 3,
	} {
		if p := c.list(params); p.TotalSize != want {
			t.Errorf("%s: %d tasks, want %d", params, p.TotalSize, want)
		}
	}
	// The field names of the protocol definition are accepted as well.
	if p := c.list(`{"page_size":2,"include_artifacts":true,"history_length":1}`); len(p.Tasks) != 2 || p.Tasks[0].Artifacts == nil ||
		len(p.Tasks[0].History) != 1 {
		t.Errorf("%+v", p)
	}
}

// TestAListThatGrowsIsReadOnce checks that a task that changes while its list is read moves to the
// front, and that no other task is skipped or repeated.
func TestAListThatGrowsIsReadOnce(t *testing.T) {
	t.Parallel()
	c := start(t, nil).speaks(t, "1.0")
	var want []string
	for range 5 {
		want = append(want, c.say("@say Hi.").ID)
	}
	first := c.list(`{"pageSize":2}`)
	c.say("@say Later.")
	rest := c.list(fmt.Sprintf(`{"pageSize":100,"pageToken":%q}`, *first.NextPageToken))
	if got := append(first.ids(), rest.ids()...); !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("%v, want %v", got, want)
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
