// Package grafana reads, for tests, what Grafana and Prometheus need to show and watch an installation: the files below
// dashboards/grafana. docs/grafana.md says how to set them up.
//
// The files are the source: edit a dashboard in Grafana, export it and put it back. They are read strictly, and the macros their SQL
// uses are expanded, so that tests can run every panel and check every metric's name.
package grafana

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/retrial-io/retrial/test/golden"
)

// Dashboard is what a dashboard's file may hold; members not listed are an error.
type Dashboard struct {
	UID                  string            `json:"uid"`
	Title                string            `json:"title"`
	Description          string            `json:"description"`
	Tags                 []string          `json:"tags"`
	SchemaVersion        int               `json:"schemaVersion"`
	Version              int               `json:"version"`
	Editable             bool              `json:"editable"`
	GraphTooltip         int               `json:"graphTooltip"`
	FiscalYearStartMonth int               `json:"fiscalYearStartMonth"`
	LiveNow              bool              `json:"liveNow"`
	Preload              bool              `json:"preload"`
	Timezone             string            `json:"timezone"`
	WeekStart            string            `json:"weekStart"`
	Refresh              string            `json:"refresh"`
	Time                 Range             `json:"time"`
	Timepicker           struct{}          `json:"timepicker"`
	Annotations          Annotations       `json:"annotations"`
	Links                []json.RawMessage `json:"links"`
	Templating           Templating        `json:"templating"`
	Panels               []Panel           `json:"panels"`
}

// Range is the time a dashboard opens on.
type Range struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Annotations are marks on all panels; there are none.
type Annotations struct {
	List []json.RawMessage `json:"list"`
}

// Templating holds the variables at the top of a dashboard.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is a choice at the top of a dashboard.
type Variable struct {
	Name        string          `json:"name"`
	Label       string          `json:"label"`
	Type        string          `json:"type"`  // datasource or query
	Query       string          `json:"query"` // SQL, or the type of data source
	Definition  string          `json:"definition"`
	DataSource  *DataSource     `json:"datasource"`
	Refresh     int             `json:"refresh"`
	Sort        int             `json:"sort"`
	Hide        int             `json:"hide"`
	Regex       string          `json:"regex"`
	SkipURLSync bool            `json:"skipUrlSync"`
	Multi       bool            `json:"multi"`
	IncludeAll  bool            `json:"includeAll"`
	AllValue    string          `json:"allValue"`
	Options     []struct{}      `json:"options"`
	Current     json.RawMessage `json:"current"`
}

// DataSource names a data source by a variable.
type DataSource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is a panel, or the title of the row of panels below it.
type Panel struct {
	ID          int             `json:"id"`
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Collapsed   bool            `json:"collapsed"`
	GridPos     GridPos         `json:"gridPos"`
	DataSource  *DataSource     `json:"datasource"`
	Targets     []Target        `json:"targets"`
	FieldConfig FieldConfig     `json:"fieldConfig"`
	Options     json.RawMessage `json:"options"`
	Panels      []Panel         `json:"panels"`
}

// GridPos is a panel's place on a grid 24 wide.
type GridPos struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// FieldConfig is how values are shown.
type FieldConfig struct {
	Defaults struct {
		Unit       string          `json:"unit"`
		Decimals   *int            `json:"decimals"`
		Thresholds json.RawMessage `json:"thresholds"`
		Custom     json.RawMessage `json:"custom"`
	} `json:"defaults"`
	Overrides []struct {
		Matcher struct {
			ID      string `json:"id"`
			Options string `json:"options"`
		} `json:"matcher"`
		Properties []struct {
			ID    string `json:"id"`
			Value string `json:"value"`
		} `json:"properties"`
	} `json:"overrides"`
}

// Target is one query of a panel: SQL for the store, PromQL for the metrics.
type Target struct {
	RefID      string      `json:"refId"`
	DataSource *DataSource `json:"datasource"`

	RawSQL        string `json:"rawSql"`
	EditorType    string `json:"editorType"`
	QueryType     string `json:"queryType"`
	PluginVersion string `json:"pluginVersion"`

	Expr         string `json:"expr"`
	EditorMode   string `json:"editorMode"`
	LegendFormat string `json:"legendFormat"`
	Range        bool   `json:"range"`
	Instant      bool   `json:"instant"`

	Format json.RawMessage `json:"format"` // 0 and 1 for SQL, time_series for PromQL
}

// Dashboards reads every dashboard, by the name of its file. Members that the types above do not
// have are an error: a member that is not read is not tested.
func Dashboards(t *testing.T) map[string]Dashboard {
	t.Helper()
	out := map[string]Dashboard{}
	for name, text := range golden.Folder(t, "dashboards/grafana/dashboards") {
		var d Dashboard
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&d); err != nil {
			t.Fatalf("dashboard %s: %v", name, err)
		}
		out[name] = d
	}
	return out
}
