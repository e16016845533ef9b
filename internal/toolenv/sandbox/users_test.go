package sandbox

import "testing"

func TestUserRanges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]UserRange{"64001": {64001, 64001}, "60600-60663": {60600, 60663}} {
		var r UserRange
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want || r.String() != text {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "0-5", "5-4", "5-", "-5", "a", "5-6-7", "1-65537", "99999999999"} {
		var r UserRange
		if err := r.UnmarshalText([]byte(text)); err == nil || r.Len() != 0 {
			t.Errorf("%q is %+v", text, r)
		}
	}
}

// TestUsersAreSharedLast acquires more ids than exist.
func TestUsersAreSharedLast(t *testing.T) {
	t.Parallel()
	u := &users{UserRange: UserRange{10, 12}}
	for n, want := range []int{10, 11, 12, 10} {
		if id := u.assign(); id != want {
			t.Errorf("folder %d is user %d's, want %d", n, id, want)
		}
	}
	for n, c := range []struct{ preferred, want int }{{11, 11}, {11, 10}, {0, 12}, {12, 12}, {12, 10}, {10, 11}} {
		if id := u.acquire(c.preferred); id != c.want {
			t.Errorf("command %d runs as %d, want %d", n, id, c.want)
		}
	}
	u.release(11)
	u.release(11)
	if id := u.acquire(12); id != 11 {
		t.Errorf("the next command runs as %d, want 11, which is free", id)
	}
}
