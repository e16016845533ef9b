package web

import "github.com/parley-server/parley/internal/store/apikey"

func roleScopes(role string) apikey.Scopes { return apikey.All }
