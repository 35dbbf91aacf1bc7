// Command chart prints the manifests of a Helm chart as Helm would install it with the chart's
// own values: those of the templates whose file names are given.
//
//	chart FOLDER NAMESPACE TEMPLATE...
package main

import (
	"fmt"
	"log"
	"os"
	"path"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}

func run(folder, namespace string, templates []string) error {
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return err
	}
	values, err := chartutil.ToRenderValues(chart, nil, chartutil.ReleaseOptions{Name: chart.Name(), Namespace: namespace, IsInstall: true},
		nil)
	if err != nil {
		return err
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	for _, name := range templates {
		text, found := rendered[path.Join(chart.Name(), "templates", name)]
		if !found {
			return fmt.Errorf("chart %s has no template %s", chart.Name(), name)
		}
		fmt.Println("---\n" + text)
	}
	return nil
}
