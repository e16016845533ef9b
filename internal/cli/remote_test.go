package cli_test

import (
	"strings"
	"testing"
)

// TestAKeyIsTakenAsItComes: with the white space that files and commands put around it; what
// cannot be a key is refused before anything is sent.
func TestAKeyIsTakenAsItComes(t *testing.T) {
	t.Parallel()
	sh, srv, _ := world(t)
	key := sh.environ[len(sh.environ)-1]
	sh.environ = append(sh.environ[:len(sh.environ)-1:len(sh.environ)-1], key+"\r\n", "PARLEY_URL= "+srv.url+"\n")
	if out := sh.must("send", "@say Hi."); !strings.Contains(out, "Hi.") {
		t.Errorf("%s", out)
	}
	sh.must("ready")
	if _, errs, code := sh.run("send", "--url", srv.url+" ", "@say Hi."); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, bad := range []string{key + "\nx", key[:20] + "\u200b" + key[20:]} {
		sh.environ[len(sh.environ)-2] = bad
		for _, args := range [][]string{{"send", "@say Hi."}, {"mcp"}, {"sessions", "list"}} {
			if _, errs, code := sh.run(args...); code != 2 || !strings.Contains(errs, "PARLEY_API_KEY") || strings.Contains(errs, strings.TrimPrefix(key, "PARLEY_API_KEY=")[:16]) || strings.Contains(errs, "again") {
				t.Errorf("%v: exit code %d: %s", args, code, errs)
			}
		}
	}
}
