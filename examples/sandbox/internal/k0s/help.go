package k0s

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// helps are the help texts of the real k0s, as recorded.
//
//go:embed help/*.txt
var helps embed.FS

// printHelp prints the recorded help of a command. A command whose help was not recorded shows
// what the stand-in itself knows.
func printHelp(w io.Writer, cmd *cobra.Command) {
	if text, err := helpText(cmd); err == nil {
		io.WriteString(w, text) // nobody is left to tell
		return
	}
	fmt.Fprintf(w, "%s\n\nThe help of this command was not recorded.\n\n%s", cmd.CommandPath(), cmd.UsageString())
}

func helpText(cmd *cobra.Command) (string, error) {
	name := strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "k0s "), " ", "-")
	text, err := helps.ReadFile("help/" + name + ".txt")
	return string(text), err
}
