package jsonrpc

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestIDsAreRepeatedByteForByte checks ids: a string or an integer of any size; nothing else is
// valid.
func TestIDsAreRepeatedByteForByte(t *testing.T) {
	t.Parallel()
	for id, valid := range map[string]bool{
		`0`: true, `-7`: true, `9007199254740993`: true, `1000000000000000000000000000001`: true, `""`: true, `"\u00e9é"`: true,
		`1.5`: false, `1e3`: false, `null`: false, `true`: false, `{}`: false, `[1]`: false,
	} {
		list, batch, err := Parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"m","params":{"a":1}}`))
		if err != nil || batch || len(list) != 1 || (list[0].Err == nil) != valid {
			t.Fatalf("%s: %+v %v", id, list, err)
		}
		text, failed := json.Marshal(Failure(list[0].ID, Errorf(InvalidParams, "no")))
		want := `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"no"}}`
		if !valid {
			want = `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}`
		}
		if failed != nil || string(text) != want {
			t.Errorf("%s: %s %v", id, text, failed)
		}
	}
}

// TestInvalidMessagesKeepTheirID checks that the error for a message has its id.
func TestInvalidMessagesKeepTheirID(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]int{
		`{"id":7,"method":"m"}`:                              InvalidRequest,
		`{"jsonrpc":"2.0","id":7}`:                           InvalidRequest,
		`{"jsonrpc":"2.0","id":7,"method":3}`:                InvalidRequest,
		`{"jsonrpc":"2.0","id":7,"result":{}}`:               InvalidRequest,
		`{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}`: InvalidParams,
	} {
		list, batch, err := Parse([]byte("[" + body + ",3]"))
		if err != nil || !batch || len(list) != 2 || string(list[0].ID) != "7" || list[0].Err == nil || list[0].Err.Code != code {
			t.Errorf("%s: %+v %v", body, list, err)
		} else if list[1].ID != nil || list[1].Err == nil || list[1].Err.Code != InvalidRequest {
			t.Errorf("an element that is not an object: %+v", list[1])
		}
	}
	for body, code := range map[string]int{``: ParseError, `{"id":1,"id":2}`: ParseError, `7`: InvalidRequest, `null`: InvalidRequest} {
		if _, _, err := Parse([]byte(body)); err == nil || err.Code != code {
			t.Errorf("%q: %v", body, err)
		}
	}
}
