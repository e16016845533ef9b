package sso

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/store/apikey"
)

// adminRole makes the members of a group administrators of the server.
const adminRole = "admin"

// Rule gives the members of a group a role.
type Rule struct {
	Group     string
	Admin     bool        // of the server; then Role and Workspace are empty
	Role      apikey.Role // in a workspace
	Workspace string      // a slug; * is every workspace
}

// Rules are the roles of all groups.
type Rules []Rule

// ParseRules parses rules such as admins=owner@*, support=approver@demo and it=admin.
func ParseRules(list []string) (Rules, error) {
	var rules Rules
	for _, text := range list {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		rule, ok := parseRule(text)
		if !ok {
			return nil, fmt.Errorf("%q is not a rule. Use GROUP=ROLE@WORKSPACE with a role of owner, editor, approver or viewer "+
				"and * for every workspace, or GROUP=admin", text)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseRule(text string) (Rule, bool) {
	at := strings.LastIndexByte(text, '=') // names of groups may contain the sign
	if at < 1 {
		return Rule{}, false
	}
	group, role := strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1:])
	if role == adminRole {
		return Rule{Group: group, Admin: true}, group != ""
	}
	name, workspace, _ := strings.Cut(role, "@")
	rule := Rule{Group: group, Role: apikey.Role(name), Workspace: workspace}
	return rule, group != "" && rule.Role.Known() && workspace != ""
}

// GrantsAdmin reports whether a group decides which users are administrators.
func (r Rules) GrantsAdmin() bool {
	return slices.ContainsFunc(r, func(rule Rule) bool { return rule.Admin })
}

// Admin reports whether one of the groups makes its members administrators.
func (r Rules) Admin(groups []string) bool {
	return slices.ContainsFunc(r, func(rule Rule) bool { return rule.Admin && slices.Contains(groups, rule.Group) })
}

// RoleIn returns the strongest role that the groups have in a workspace, "" for none.
func (r Rules) RoleIn(workspace string, groups []string) apikey.Role {
	for _, role := range apikey.Roles {
		for _, rule := range r {
			if rule.Role == role && (rule.Workspace == "*" || rule.Workspace == workspace) && slices.Contains(groups, rule.Group) {
				return role
			}
		}
	}
	return ""
}
