package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// images are the pictures of the documents: names of what is seen, and their files.
var images = map[string]string{
	"today-wide-light": "today.webp", "explore-filtered-wide-light": "explore.webp", "event-refused-wide-light": "request.webp",
	"subject-wide-light": "subject.webp",
}

// shot writes what is seen to RETRIAL_SCREENSHOTS, a folder, if that is set; RETRIAL_IMAGES is the folder of the documents' pictures.
func (b *browser) shot(t *testing.T, name string) {
	t.Helper()
	if folder := os.Getenv("RETRIAL_SCREENSHOTS"); folder != "" {
		write(t, filepath.Join(folder, name+".png"), b.picture(t, page.CaptureScreenshotFormatPng))
	}
	if folder := os.Getenv("RETRIAL_IMAGES"); folder != "" && images[name] != "" {
		write(t, filepath.Join(folder, images[name]), b.picture(t, page.CaptureScreenshotFormatWebp))
	}
}

// picture is what is seen.
func (b *browser) picture(t *testing.T, format page.CaptureScreenshotFormat) []byte {
	t.Helper()
	take := func(ctx context.Context, target *chromedp.Target) (page.CaptureScreenshotResult, error) {
		return cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: format})
	}
	taken, err := chromedp.Run(b.ctx, chromedp.Action[page.CaptureScreenshotResult](take))
	b.must(t, "take a picture", err)
	return taken.Data
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
