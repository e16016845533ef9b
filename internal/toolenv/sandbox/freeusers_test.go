package sandbox

import "testing"

func TestFreeUsersAreNobodyElses(t *testing.T) {
	t.Parallel()
	passwd := usersIn("root:x:0:0:root:/root:/bin/bash\nodd\nbuild:x:60610:60610::/:/bin/sh\n")
	subuid := rangesIn("build:100000:65536\nodd:1\nother:60632:100\n")
	if want := (UserRange{60760, 60791}); freeUsers(32, append(passwd, subuid...)) != want {
		t.Errorf("%v, want %v", freeUsers(32, append(passwd, subuid...)), want)
	}
	if got := freeUsers(64, []UserRange{{1, 70000}}); got.Len() != 0 {
		t.Errorf("%v is in use", got)
	}
	if got := FreeUsers(64); got.Len() != 64 && got.Len() != 0 {
		t.Errorf("%v", got)
	}
}
