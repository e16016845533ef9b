package app

import "github.com/parley-server/parley/internal/sso"

// identityProvider returns the provider of the settings, or nil.
func (c Config) identityProvider() *sso.Provider {
	if c.OIDCIssuer == "" {
		return nil
	}
	rules, _ := sso.ParseRules(c.OIDCRoles) // checked by Load
	return sso.New(sso.Config{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCClientSecret.Reveal(), GroupsClaim: c.OIDCGroupsClaim,
		Roles: rules, Name: c.OIDCName, AcceptUnverified: c.OIDCUnverified,
	})
}

// listProviderProblems lists the problems of the settings of the identity provider.
func (c Config) listProviderProblems() (list []string) {
	if c.OIDCIssuer != "" && !webURL(c.OIDCIssuer) {
		list = append(list, "PARLEY_OIDC_ISSUER takes an address with https:// or http://.")
	}
	if (c.OIDCIssuer == "") != (c.OIDCClientID == "") {
		list = append(list, "PARLEY_OIDC_ISSUER and PARLEY_OIDC_CLIENT_ID belong together: set both or none.")
	}
	if _, err := sso.ParseRules(c.OIDCRoles); err != nil {
		list = append(list, "PARLEY_OIDC_ROLES: "+err.Error()+".")
	}
	return list
}
