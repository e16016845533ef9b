package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// checkUTF8 rejects a command line that is not UTF-8, which cannot be sent unchanged. Names of
// files may have any bytes, since they are not sent.
func checkUTF8(cmd *cobra.Command) error {
	if !strings.Contains(cmd.Use, "FILE") && cmd.Annotations[anyBytes] == "" && !utf8.ValidString(strings.Join(cmd.Flags().Args(), " ")) {
		return notText(cmd, "An argument")
	}
	var bad error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		_, file := f.Annotations[cobra.BashCompFilenameExt]
		_, folder := f.Annotations[cobra.BashCompSubdirsInDir]
		if bad == nil && !file && !folder && !utf8.ValidString(f.Value.String()) {
			bad = notText(cmd, "--"+f.Name)
		}
	})
	return bad
}

// anyBytes annotates a command whose arguments can have any bytes, such as paths of an agent's files.
const anyBytes = "any bytes"

// notText returns the error for input that is not UTF-8, without repeating it.
func notText(cmd *cobra.Command, what string) error {
	return usageError(cmd, what+" is not UTF-8.", "The server takes text in UTF-8 alone. Convert it, with iconv for example.")
}
