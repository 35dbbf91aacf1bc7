package grafana_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/test/grafana"
)

func dashboards(t *testing.T) map[string]grafana.Dashboard {
	t.Helper()
	all := grafana.Dashboards(t)
	if len(all) != 3 {
		t.Fatalf("%d dashboards", len(all))
	}
	return all
}

// units are those of Grafana that the dashboards use.
var units = map[string]bool{
	"short": true, "none": true, "percentunit": true, "s": true, "bytes": true, "eps": true, "reqps": true, "cps": true,
	"dateTimeAsIso": true, "dateTimeFromNow": true,
}

// TestDashboards: every dashboard is whole, every panel says what it shows and asks a data
// source that the reader chooses.
func TestDashboards(t *testing.T) {
	uids := map[string]bool{}
	for file, d := range dashboards(t) {
		t.Run(file, func(t *testing.T) {
			if d.UID == "" || uids[d.UID] || d.Title == "" || d.Description == "" || d.SchemaVersion < 39 || len(d.Links) != 0 ||
				len(d.Annotations.List) != 0 {
				t.Errorf("uid %q, title %q, description %q, schema %d, %d links", d.UID, d.Title, d.Description, d.SchemaVersion,
					len(d.Links))
			}
			uids[d.UID] = true
			vars := map[string]grafana.Variable{}
			for _, v := range d.Templating.List {
				vars[v.Name] = v
			}
			ids, seen := map[int]bool{}, [400][24]bool{}
			titles := map[string]bool{}
			for _, p := range d.Panels {
				if ids[p.ID] {
					t.Errorf("panel %q: id %d is used twice", p.Title, p.ID)
				}
				ids[p.ID] = true
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
						if x > 23 || seen[y][x] {
							t.Fatalf("panel %q lies over another or over the edge", p.Title)
						}
						seen[y][x] = true
					}
				}
				if p.Type == "row" {
					continue
				}
				checkPanel(t, p, vars)
				if titles[p.Title] {
					t.Errorf("two panels are called %q", p.Title)
				}
				titles[p.Title] = true
			}
		})
	}
}

func checkPanel(t *testing.T, p grafana.Panel, vars map[string]grafana.Variable) {
	t.Helper()
	if p.Title == "" || len(p.Description) < 20 || !strings.HasSuffix(p.Description, ".") {
		t.Errorf("panel %q: description %q", p.Title, p.Description)
	}
	if !units[p.FieldConfig.Defaults.Unit] {
		t.Errorf("panel %q: unit %q", p.Title, p.FieldConfig.Defaults.Unit)
	}
	if len(p.Targets) == 0 {
		t.Errorf("panel %q asks nothing", p.Title)
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		if refs[q.RefID] || q.RefID == "" {
			t.Errorf("panel %q: query %q is there twice", p.Title, q.RefID)
		}
		refs[q.RefID] = true
		for _, ds := range []*grafana.DataSource{p.DataSource, q.DataSource} {
			if ds == nil || !strings.HasPrefix(ds.UID, "${") {
				t.Fatalf("panel %q: data source %+v", p.Title, ds)
			}
			v, ok := vars[strings.Trim(ds.UID, "${}")]
			if !ok || v.Type != "datasource" || v.Query != ds.Type {
				t.Errorf("panel %q: data source %s of type %s is not chosen by a variable", p.Title, ds.UID, ds.Type)
			}
		}
		switch q.DataSource.Type {
		case "prometheus":
			if q.Expr == "" || q.RawSQL != "" || q.Range == q.Instant {
				t.Errorf("panel %q: %+v", p.Title, q)
			}
		case "grafana-clickhouse-datasource":
			want := map[string]string{"timeseries": "0"}[p.Type]
			if want == "" {
				want = "1"
			}
			if q.RawSQL == "" || q.Expr != "" || q.EditorType != "sql" || string(q.Format) != want {
				t.Errorf("panel %q: format %s of %s", p.Title, q.Format, q.RawSQL)
			}
		default:
			t.Errorf("panel %q: data source of type %s", p.Title, q.DataSource.Type)
		}
	}
}

// TestNoLinks: nothing in the files leads a browser elsewhere or holds a secret.
func TestNoLinks(t *testing.T) {
	address := regexp.MustCompile(`(?i)https?://[^"\s]*`)
	for _, name := range []string{"dashboards/overview.json", "dashboards/security.json", "dashboards/pipeline.json",
		"provisioning/datasources.yaml", "provisioning/dashboards.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range address.FindAllString(string(text), -1) {
			if !strings.HasPrefix(a, "http://127.0.0.1:") {
				t.Errorf("%s has the address %s", name, a)
			}
		}
	}
}

// TestProvisioning: the provisioning files are of the form Grafana reads, and name the data
// sources the dashboards ask for.
func TestProvisioning(t *testing.T) {
	var sources struct {
		APIVersion  int `json:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			JSONData                     json.RawMessage   `json:"jsonData"`
			SecureJSONData               map[string]string `json:"secureJsonData"`
		} `json:"datasources"`
	}
	read(t, "provisioning/datasources.yaml", &sources)
	types := map[string]bool{}
	for _, s := range sources.Datasources {
		types[s.Type] = true
		for name, value := range s.SecureJSONData {
			if !strings.HasPrefix(value, "$") {
				t.Errorf("%s: the secret %s stands in the file", s.Name, name)
			}
		}
	}
	if sources.APIVersion != 1 || !types["prometheus"] || !types["grafana-clickhouse-datasource"] {
		t.Errorf("%+v", sources)
	}
	var providers struct {
		APIVersion int `json:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type    string
			DisableDeletion       bool              `json:"disableDeletion"`
			AllowUIUpdates        bool              `json:"allowUiUpdates"`
			UpdateIntervalSeconds int               `json:"updateIntervalSeconds"`
			Options               map[string]string `json:"options"`
		} `json:"providers"`
	}
	read(t, "provisioning/dashboards.yaml", &providers)
	if providers.APIVersion != 1 || len(providers.Providers) != 1 || providers.Providers[0].Options["path"] == "" {
		t.Errorf("%+v", providers)
	}
}

// read decodes a YAML file; members the type does not have are errors.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
