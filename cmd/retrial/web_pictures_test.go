package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"
	"github.com/go-fonts/dejavu/dejavusansmono"
	"github.com/go-fonts/dejavu/dejavusansmonobold"
	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// images are the pictures of the documents: names of what is seen, and their files.
var images = map[string]string{
	"today-wide-light": "today.webp", "explore-filtered-wide-light": "explore.webp", "event-refused-wide-light": "request.webp",
	"subject-wide-light": "subject.webp", "whatif-wide-light": "whatif.webp",
}

// What a page looks like is compared with what it looked like, at half its size: testdata/pages. A tile is four of those pixels each way,
// so that edges of letters, which no two versions of a browser draw alike, do not count; it differs if a colour of it does by shadeOff.
// Up to tilesOff of the tiles may.
const (
	keptPages = "testdata/pages"
	halfSize  = 0.5
	tile      = 4
	shadeOff  = 20
	tilesOff  = 0.01
)

// shot compares what is seen with what is kept of it. RETRIAL_KEEP_PAGES=1 keeps what is seen instead; RETRIAL_SCREENSHOTS, a folder, takes
// it as it is, and RETRIAL_IMAGES, a folder, the documents' pictures.
func (b *browser) shot(t *testing.T, name string) {
	t.Helper()
	if folder := os.Getenv("RETRIAL_SCREENSHOTS"); folder != "" {
		write(t, filepath.Join(folder, name+".png"), b.picture(t, page.CaptureScreenshotFormatPng, 1))
	}
	if folder := os.Getenv("RETRIAL_IMAGES"); folder != "" && images[name] != "" {
		write(t, filepath.Join(folder, images[name]), b.picture(t, page.CaptureScreenshotFormatWebp, 1))
	}
	file, seen := filepath.Join(keptPages, name+".webp"), b.picture(t, page.CaptureScreenshotFormatWebp, halfSize)
	if os.Getenv("RETRIAL_KEEP_PAGES") != "" {
		write(t, file, seen)
		return
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%v: make screenshots keeps what the pages look like", err)
		return
	}
	if off := unlike(t, was, seen); off > tilesOff {
		t.Errorf("%s no longer looks like %s: %.1f %% of it differs. RETRIAL_SCREENSHOTS=FOLDER writes what it looks like now; "+
			"make screenshots keeps it", name, file, 100*off)
	}
}

// unlike returns how much of two pictures differs, 0 to 1.
func unlike(t *testing.T, was, is []byte) float64 {
	t.Helper()
	a, b := tiles(t, was), tiles(t, is)
	if a.Rect != b.Rect {
		return 1
	}
	off := 0
	for i := 0; i < len(a.Pix); i += 4 {
		for c := range 3 {
			if math.Abs(float64(a.Pix[i+c])-float64(b.Pix[i+c])) > shadeOff {
				off++
				break
			}
		}
	}
	return float64(off) / float64(len(a.Pix)/4)
}

// tiles is a picture by its tiles' mean colours.
func tiles(t *testing.T, picture []byte) *image.RGBA {
	t.Helper()
	full, err := webp.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	small := image.NewRGBA(image.Rect(0, 0, full.Bounds().Dx()/tile, full.Bounds().Dy()/tile))
	draw.BiLinear.Scale(small, small.Rect, full, full.Bounds(), draw.Src, nil)
	return small
}

// picture is what is seen, in a size of the real one.
func (b *browser) picture(t *testing.T, format page.CaptureScreenshotFormat, size float64) []byte {
	t.Helper()
	seen := value[[]float64](t, b, "what is seen", `[scrollX, scrollY, innerWidth, innerHeight]`)
	params := page.CaptureScreenshotParams{Format: format,
		Clip: &page.Viewport{X: seen[0], Y: seen[1], Width: seen[2], Height: seen[3], Scale: size}}
	take := func(ctx context.Context, target *chromedp.Target) (page.CaptureScreenshotResult, error) {
		return cdp.Call(ctx, target, page.CaptureScreenshot, params)
	}
	taken, err := chromedp.Run(b.ctx, chromedp.Action[page.CaptureScreenshotResult](take))
	b.must(t, "take a picture", err)
	return taken.Data
}

// ownFonts writes the fonts that pages are drawn with, so that they look the same on every machine, and returns what FONTCONFIG_FILE has
// to name for that.
func ownFonts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, font := range [][]byte{dejavusans.TTF, dejavusansbold.TTF, dejavusansmono.TTF, dejavusansmonobold.TTF} {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.ttf", i)), font)
	}
	config := filepath.Join(dir, "fonts.conf")
	write(t, config, []byte(`<?xml version="1.0"?><fontconfig><dir>`+dir+`</dir><cachedir>`+dir+`/cache</cachedir></fontconfig>`))
	return config
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
