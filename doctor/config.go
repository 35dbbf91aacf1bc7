package doctor

import (
	"fmt"
	"os"

	"github.com/retrial-io/retrial/internal/cli"
	apiserver "github.com/retrial-io/retrial/replay/config"
)

// ConfigReport is an apiserver's configuration as it was read, and whether it is complete.
type ConfigReport struct {
	Complete bool `json:"complete"`
	*apiserver.Report
}

// ConfigReading is one version of a configuration as it was read, ConfigNote a line of it.
type (
	ConfigReading = apiserver.Reading
	ConfigNote    = apiserver.Note
)

// CheckConfig reads a folder with the configuration of a cluster's apiservers, as the engine does.
func CheckConfig(dir string) (*ConfigReport, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	_, report, err := apiserver.ReadHistory(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &ConfigReport{report.Complete(), report}, nil
}
