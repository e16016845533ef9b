package egress

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// opcodeQuery is the DNS operation of a standard query.
const opcodeQuery = 0

// dnsTTL is how long a program may cache an address, in seconds.
const dnsTTL = 60

// ServeDNS answers the lookups of programs that use no proxy. A host that the run may reach gets
// its own address, which leads to ServeTLS and ServePlain; no other name exists. ServeDNS never
// queries another server. It returns when c is closed or ctx ends.
func (r *Run) ServeDNS(ctx context.Context, c net.PacketConn) error {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	packet := make([]byte, 512)
	for {
		n, from, err := c.ReadFrom(packet)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if reply := r.answerQuery(ctx, packet[:n]); reply != nil {
			_, _ = c.WriteTo(reply, from) // a client that does not receive it queries again
		}
	}
}

// answerQuery returns the reply to a message, or nil if the message is not a DNS query.
func (r *Run) answerQuery(ctx context.Context, packet []byte) []byte {
	var p dnsmessage.Parser
	query, err := p.Start(packet)
	if err != nil || query.Response {
		return nil
	}
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true, OpCode: query.OpCode,
		Authoritative: true, RecursionDesired: query.RecursionDesired, RecursionAvailable: true}}
	if query.OpCode != opcodeQuery {
		reply.RCode = dnsmessage.RCodeNotImplemented
	} else if question, ok := parseQuestion(&p); !ok {
		reply.RCode = dnsmessage.RCodeFormatError
	} else {
		reply.Questions = []dnsmessage.Question{question}
		reply.Answers, reply.RCode = r.resolveQuestion(ctx, question)
	}
	out, err := reply.Pack()
	if err != nil {
		return nil
	}
	return out
}

// resolveQuestion returns the address record for a question, and the code of the reply.
func (r *Run) resolveQuestion(ctx context.Context, q dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode) {
	host, addr, err := parseHost(strings.TrimSuffix(q.Name.String(), "."))
	if err != nil || addr.IsValid() || !r.mayResolve(ctx, host, q.Type) {
		return nil, dnsmessage.RCodeNameError
	}
	if q.Type != dnsmessage.TypeA {
		return nil, dnsmessage.RCodeSuccess // the name has no other records
	}
	address, ok := r.names.addressFor(host)
	if !ok {
		return nil, dnsmessage.RCodeServerFailure
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: dnsTTL}
	return []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: address}}}, dnsmessage.RCodeSuccess
}

// mayResolve reports whether the run may reach a host, by the rules for requests. It records a
// refused lookup once for each name.
func (r *Run) mayResolve(ctx context.Context, host string, kind dnsmessage.Type) bool {
	_, refused := r.admitURL(&url.URL{Scheme: "https", Host: host})
	if refused == nil {
		return true
	}
	if _, err := r.admitURL(&url.URL{Scheme: "http", Host: host}); err == nil {
		return true
	}
	if kind == dnsmessage.TypeA && r.names.noteRefused(host) {
		at := Request{Method: "LOOKUP", Scheme: "dns", Host: r.redactForRecord(host, 260), Decision: decisionOf(refused)}
		if done, err := r.recordRequest(ctx, at); err == nil {
			done(0, at.Decision)
		}
	}
	return false
}

// parseQuestion returns the only question of a query. A query without one, with several, or with
// records other than additional ones such as EDNS is malformed.
func parseQuestion(p *dnsmessage.Parser) (q dnsmessage.Question, ok bool) {
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || questions[0].Class != dnsmessage.ClassINET {
		return q, false
	}
	if _, err := p.AnswerHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return q, false
	}
	if err := p.SkipAllAnswers(); err != nil {
		return q, false
	}
	_, err = p.AuthorityHeader()
	return questions[0], errors.Is(err, dnsmessage.ErrSectionDone)
}
