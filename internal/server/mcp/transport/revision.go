package transport

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/strictjson"
)

const (
	// batches is the only revision with batches, and the default for a request without the header.
	batches = "2025-03-26"
	// RoundTrips is the first revision without a handshake, and the first in which a result can
	// be a question: in earlier ones the server sends a request of its own, and without sessions
	// it could not receive the response.
	RoundTrips = "2026-07-28"
)

const (
	revisionHeader = "MCP-Protocol-Version"
	methodHeader   = "Mcp-Method"
	nameHeader     = "Mcp-Name"
)

// revisionOf returns the revision of a request.
func revisionOf(h http.Header) (string, *jsonrpc.Error) {
	r := strings.Join(h.Values(revisionHeader), ", ")
	switch all := mcp.SupportedProtocolVersions(); {
	case r == "":
		return batches, nil
	case !slices.Contains(all, r):
		bad := jsonrpc.Errorf(mcp.CodeUnsupportedProtocolVersion, "The header %s names the revision %q. There are %s.", revisionHeader,
			request.Short(r), strings.Join(all, ", "))
		bad.Data = mcp.UnsupportedProtocolVersionData{Supported: all, Requested: request.Short(r)}
		return r, bad
	}
	return r, nil
}

// methodsOf returns the methods of a revision. The SDK would accept more: with empty lists, and
// with a listener that holds a connection for notifications that never come.
func methodsOf(revision string) []string {
	if revision < RoundTrips {
		return []string{"initialize", "ping", "tools/list", "tools/call"}
	}
	return []string{"server/discover", "tools/list", "tools/call"}
}

// checkRevision checks that a request has the metadata of its revision, equal in headers and body.
func (m *message) checkRevision(revision string, h http.Header) *jsonrpc.Error {
	var meta map[string]json.RawMessage
	_ = strictjson.Unmarshal(m.rawParam("_meta"), &meta) // an object, or absent
	var own string
	if raw, there := meta[mcp.MetaKeyProtocolVersion]; !there {
		if revision < RoundTrips {
			return nil
		}
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "params._meta must have %s.", mcp.MetaKeyProtocolVersion)
	} else if raw[0] != '"' || json.Unmarshal(raw, &own) != nil {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "%s in params._meta must be a string.", mcp.MetaKeyProtocolVersion)
	}
	switch {
	case h.Get(revisionHeader) == "":
		return jsonrpc.Errorf(mcp.CodeHeaderMismatch, "params._meta has %s, and the header %s is missing.", mcp.MetaKeyProtocolVersion,
			revisionHeader)
	case own != revision:
		return jsonrpc.Errorf(mcp.CodeHeaderMismatch, "The header %s is %q, and params._meta says %q.", revisionHeader, revision,
			request.Short(own))
	case revision < RoundTrips:
		return nil
	}
	for name, shape := range map[string]any{mcp.MetaKeyClientCapabilities: new(mcp.ClientCapabilities),
		mcp.MetaKeyClientInfo: new(mcp.Implementation)} {
		raw := meta[name]
		switch {
		case raw == nil && name == mcp.MetaKeyClientCapabilities:
			return jsonrpc.Errorf(jsonrpc.InvalidParams, "params._meta must have %s.", name)
		case raw != nil && (raw[0] != '{' || strictjson.Unmarshal(raw, shape) != nil):
			return jsonrpc.Errorf(jsonrpc.InvalidParams, "%s in params._meta is not what it has to be.", name)
		}
	}
	return m.checkHeaders(h)
}

// checkHeaders compares headers with the members of the body that they repeat.
func (m *message) checkHeaders(h http.Header) *jsonrpc.Error {
	want := map[string]string{methodHeader: m.Method}
	if m.Method == "tools/call" {
		want[nameHeader] = m.name
	}
	for _, name := range []string{methodHeader, nameHeader} {
		body, checked := want[name]
		header := decodeHeader(strings.Join(h.Values(name), ", "))
		switch {
		case !checked || header == body:
		case header == "":
			return jsonrpc.Errorf(mcp.CodeHeaderMismatch, "The header %s is missing. It must be %q, as in the body.", name, request.Short(body))
		default:
			return jsonrpc.Errorf(mcp.CodeHeaderMismatch, "The header %s is %q, and the body says %q.", name, request.Short(header),
				request.Short(body))
		}
	}
	return nil
}

// decodeHeader returns the value of a header that may be in Base64.
func decodeHeader(value string) string {
	if inner, ok := strings.CutPrefix(value, "=?base64?"); ok {
		if inner, ok = strings.CutSuffix(inner, "?="); ok {
			if text, err := base64.StdEncoding.DecodeString(inner); err == nil {
				return string(text)
			}
		}
	}
	return value
}
