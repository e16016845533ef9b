package web

import (
	"os"
	"testing"

	"github.com/parley-server/parley/internal/testing/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }
