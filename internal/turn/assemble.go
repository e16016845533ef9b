package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv"
)

// newAgent makes the agent of a turn, its conversation, and the run of its tools, which the caller
// closes.
func (s *Service) newAgent(ctx context.Context, claimed session.Claimed, a *attempt) (_ *agent.Agent, conv agent.Conversation,
	_ *toolenv.Run, err error) {
	t := claimed.Turn
	conv = agent.Conversation{Workspace: t.WorkspaceID, Session: t.SessionID, Turn: t.ID}
	m, fallbacks, err := s.modelsOf(ctx, claimed, a)
	if err != nil {
		return nil, conv, nil, err
	}
	log, err := s.logOf(ctx, claimed)
	if err != nil {
		return nil, conv, nil, err
	}
	conv.Log, conv.Shown, conv.Tail, conv.Reasoning = log.Events, log.Shown.Before, log.Shown.Tail, log.Shown.Reasoning
	if countAttempts(conv.Log) > maxAttempts {
		return nil, conv, nil, &agent.Failure{Code: event.RunnerLost,
			Message: fmt.Sprintf("The turn was interrupted %d times and is given up.", maxAttempts)}
	}
	conv.Budget = claimed.Agent.HistoryTokens
	if log.HasHistory {
		past, err := s.cfg.Sessions.History(ctx, t)
		if err != nil {
			return nil, conv, nil, err
		}
		for _, p := range past {
			conv.History = append(conv.History, agent.Past(p))
		}
	}
	if err := s.addMessageParts(ctx, t, log.HasAttachments, true, &conv); err != nil {
		return nil, conv, nil, err
	}
	names := credentialNames(t, conv.Log)
	instructions, err := s.buildInstructions(ctx, t.WorkspaceID, claimed.Agent.Instructions, names)
	if err != nil {
		return nil, conv, nil, err
	}
	ag := &agent.Agent{Model: m, Fallbacks: fallbacks, Effort: claimed.Agent.Effort, Summaries: claimed.Agent.Summaries,
		Instructions: instructions, MaxTurns: int(t.MaxTurns), Catalog: s.cfg.Catalog, MaxCostUSD: t.MaxCostUSD, Afford: s.affordOf(claimed),
		Permit: s.permitOf(t, claimed.Agent), MayConnect: slices.Contains(t.Scopes, configScope),
		Secrets: s.secretsOf(t), Unconfirmed: pgerr.IsUnconfirmed, Log: s.log.With("workspace", t.WorkspaceID, "session", t.SessionID,
			"turn", t.ID)}
	s.sealReasoning(ag, t)
	s.keepSetup(ag, t)
	if t.ResponseSchema != nil {
		if ag.Output, err = structuredOutput(t.ResponseSchema); err != nil {
			return nil, conv, nil, err
		}
	}
	if err := applyOptions(ag, t); err != nil {
		return nil, conv, nil, err
	}
	run := s.cfg.Runner.Open(toolenv.Turn{Workspace: t.WorkspaceID, Session: t.SessionID, Turn: t.ID, Epoch: t.Epoch, Credentials: names})
	ag.Redact = run.Redact
	if s.cfg.Tools != nil {
		ag.Tools = s.cfg.Tools(run)
	}
	rules, err := s.addOwnTools(ctx, ag, claimed, run)
	if err != nil {
		run.Close()
		return nil, conv, nil, err
	}
	offerTools(ag, claimed.Agent.Tools)
	if err := addCallerTools(ag, t.Tools, rules); err != nil {
		run.Close()
		return nil, conv, nil, err
	}
	ag.Await = func(ctx context.Context, toolUseID string) error {
		return s.cfg.Sessions.AwaitCalls(ctx, t, event.InputResult, toolUseID)
	}
	ag.FindResult = func(ctx context.Context, toolUseID string) (event.ToolOutput, bool, error) {
		return s.cfg.Sessions.FindResult(ctx, t.SessionID, toolUseID)
	}
	if run != nil {
		ag.KeepResult = func(ctx context.Context, call tool.Call, output string) (string, error) {
			return run.KeepResult(ctx, call, "txt", []byte(output))
		}
		ag.ReadResult = run.ReadResult
	}
	return ag, conv, run, nil
}

// addOwnTools adds the workspace's own tools, and makes the denied tools unavailable. It returns the
// rules of the turn.
func (s *Service) addOwnTools(ctx context.Context, ag *agent.Agent, claimed session.Claimed, run *toolenv.Run) (rules permission.Rules,
	err error) {
	if claimed.HasTools {
		if s.cfg.OwnTools != nil && run != nil {
			own, err := s.cfg.OwnTools(ctx, claimed.Turn.WorkspaceID, run)
			if err != nil {
				return rules, err
			}
			for _, t := range own { // an entry may be older than a built-in tool of its name
				if !slices.ContainsFunc(ag.Tools, func(other tool.Tool) bool { return other.Spec().Name == t.Spec().Name }) {
					ag.Tools = append(ag.Tools, t)
				}
			}
		}
		if s.cfg.Permissions != nil {
			if rules, err = s.cfg.Permissions.Rules(ctx, claimed.Turn.WorkspaceID); err != nil {
				return rules, err
			}
		}
	}
	rules = rules.WithAgent(claimed.Agent.Tools, claimed.Agent.Rules)
	for i, t := range ag.Tools {
		if reason := rules.Denied(t.Spec().Name); reason != "" && s.cfg.Permissions != nil {
			ag.Tools[i] = deniedTool{t, reason}
		}
	}
	return rules, nil
}

// deniedTool is a tool that the model is not offered, because the rules deny every call.
type deniedTool struct {
	tool.Tool
	reason string
}

// Spec implements tool.Tool.
func (t deniedTool) Spec() tool.Spec {
	spec := t.Tool.Spec()
	spec.Unavailable = t.reason
	return spec
}

// Summary implements tool.Summarizer.
func (t deniedTool) Summary(input json.RawMessage) string {
	if s, ok := t.Tool.(tool.Summarizer); ok {
		return s.Summary(input)
	}
	return "call " + t.Spec().Name
}

// offerTools leaves only the tools of the agent's version; labels is nil if it offers every tool.
func offerTools(ag *agent.Agent, labels map[string]string) {
	if labels == nil {
		return
	}
	ag.Tools = slices.DeleteFunc(ag.Tools, func(t tool.Tool) bool {
		_, offered := labels[t.Spec().Name]
		return !offered
	})
	if _, offered := labels[agent.SecretTool]; !offered {
		ag.Secrets = nil
	}
}

// logOf returns the log of a claimed turn.
func (s *Service) logOf(ctx context.Context, claimed session.Claimed) (session.TurnLog, error) {
	if claimed.Log != nil {
		return *claimed.Log, nil
	}
	log, err := s.cfg.Sessions.ReadTurnLog(ctx, claimed.Turn)
	if err != nil {
		return log, err
	}
	if err := checkLog(log.Events, claimed.Lease.Epoch); err != nil {
		s.cfg.Metrics.LogsBroken.Inc()
		return log, fmt.Errorf("the log of the turn is broken: %w", err)
	}
	return log, nil
}

// addMessageParts adds the parts of the message that are not in the log: the sealed prompt of a
// skill, and the attached files. With extract set, PDFs get their text if they have none.
func (s *Service) addMessageParts(ctx context.Context, t session.Turn, attached, extract bool, conv *agent.Conversation) error {
	if t.Prompt != nil {
		text, err := s.cfg.Vault.Keyring().Open(t.Prompt, promptPurpose, t.ID.String())
		if err != nil {
			s.log.ErrorContext(ctx, "open the prompt of a turn", "session", t.SessionID, "turn", t.ID, "err", err)
			return &agent.Failure{Code: event.SkillFailed,
				Message: "The skill's prompt cannot be opened. Ask the administrator to check the keys of the vault."}
		}
		conv.Prompt = string(text)
	}
	if !attached {
		return nil
	}
	files, err := s.cfg.Files.Inbound(ctx, t.ID, extract)
	if err != nil {
		return err
	}
	for _, f := range files {
		switch {
		case f.Data == nil:
			conv.Files = append(conv.Files, fmt.Sprintf("[attached: %s, %s, %d bytes; its content is not shown]", f.Filename, f.MIME, f.Size))
		case strings.HasPrefix(f.MIME, "image/"):
			conv.Images = append(conv.Images, model.Image{MIME: f.MIME, Data: f.Data})
		case f.PDF():
			conv.Documents = append(conv.Documents, model.File{Name: f.Filename, MIME: f.MIME, Data: f.Data, Text: f.Extracted})
			conv.Files = append(conv.Files, fmt.Sprintf("[attached: %s, %s, %d bytes]", f.Filename, f.MIME, f.Size))
		default:
			text, err := json.Marshal(string(f.Data)) // as JSON, the data cannot be mistaken for anything else or end the block
			if err != nil {
				return fmt.Errorf("encode attachment: %w", err)
			}
			conv.Files = append(conv.Files, fmt.Sprintf("<attachment name=%q type=%q>\n%s\n</attachment>", f.Filename, f.MIME, text))
		}
	}
	return s.addFilePaths(ctx, t, conv)
}

// addFilePaths adds the paths of the attached files in the session's folder, for tools.
func (s *Service) addFilePaths(ctx context.Context, t session.Turn, conv *agent.Conversation) error {
	if s.cfg.Runner == nil || len(conv.Files)+len(conv.Images) == 0 {
		return nil
	}
	received, err := s.cfg.Files.Received(ctx, t.WorkspaceID, t.SessionID, t.ID)
	if err != nil {
		return err
	}
	var paths []string
	for _, f := range received {
		if f.Turn == t.ID {
			paths = append(paths, strconv.Quote("/workspace/attachments/"+f.Name))
		}
	}
	conv.Files = append(conv.Files, "[tools find what is attached at "+strings.Join(paths, ", ")+"]")
	return nil
}

// permitOf applies the rules of the agent's version, and the workspace's as they are when a tool is
// called.
func (s *Service) permitOf(t session.Turn, own session.Agent) agent.Permit {
	if s.cfg.Permissions == nil {
		return nil
	}
	return func(ctx context.Context, name string, input json.RawMessage) (agent.Verdict, error) {
		rules, err := s.cfg.Permissions.Rules(ctx, t.WorkspaceID)
		if err != nil {
			return agent.Verdict{}, err
		}
		switch j := rules.WithAgent(own.Tools, own.Rules).Judge(name, input, t.Scopes); j.Verdict {
		case permission.Allow:
			return agent.Verdict{Source: j.Source, Matched: j.Pattern}, nil
		case permission.Ask:
			return agent.Verdict{Ask: true, Pattern: permission.Suggest(name, input)}, nil
		default:
			return agent.Verdict{Denied: j.Reason, Source: j.Source}, nil
		}
	}
}

// secretsOf lets the model request registered credentials, and describes them to it.
func (s *Service) secretsOf(t session.Turn) agent.Secrets {
	return func(ctx context.Context, name string) (string, error) {
		err := s.cfg.Vault.Known(ctx, t.WorkspaceID, []string{name})
		if f := fault.From(err); f != nil {
			known := strings.Join(f.Detail.AvailableKeys, ", ")
			if known == "" {
				known = "none; an administrator registers them, with parley secrets set"
			}
			return fmt.Sprintf("No credential %q is registered. Registered credentials: %s.", name, known), nil
		}
		return "", err
	}
}

// countAttempts counts the interruptions of a turn since it last stopped by itself: waiting for an
// answer is not an interruption.
func countAttempts(log []event.Event) (n int) {
	for _, ev := range log {
		switch ev.Kind {
		case event.KindStarted:
			n++
		case event.KindInputRequired, event.KindToolRequired, event.KindToolLater, event.KindConnect:
			n = 0
		}
	}
	return n
}
