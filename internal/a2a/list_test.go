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
	<-c.gate.entered
	lined := c.read(c.ask("SendMessage", c.params(unique(), text("@say Later."), c.atOnce(), fmt.Sprintf(`"contextId":%q`, works.ContextID), `"metadata":{"multitask_strategy":"enqueue"}`)))

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
	for _, params := range []string{`{"pageSize":0}`, `{"pageSize":101}`, `{"pageSize":"x"}`, `{"status":"TASK_STATE_RUNNING"}`, `{"pageToken":"x"}`, `{"historyLength":-1}`, `{"statusTimestampAfter":"yesterday"}`} {
		c.refused(-32602, "ListTasks", params)
	}
	c.gate.leave <- struct{}{}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
