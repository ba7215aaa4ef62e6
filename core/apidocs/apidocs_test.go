package apidocs_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/apidocs"
)

func TestThePageShowsEveryOperationAndNeedsNoNetwork(t *testing.T) {
	openapi, err := os.ReadFile("../httpapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New()
	apidocs.New(openapi).Mount(app)
	resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/docs", nil), -1)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none'; style-src 'sha256-") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	operations := regexp.MustCompile(`(?m)operationId: (\w+)`).FindAllSubmatch(openapi, -1)
	if len(operations) < 50 {
		t.Fatalf("only %d operations were found", len(operations))
	}
	for _, m := range operations {
		if !strings.Contains(page, `<article id="`+string(m[1])+`">`) || !strings.Contains(page, `href="#`+string(m[1])+`"`) {
			t.Errorf("the page does not show %s", m[1])
		}
	}
	for _, want := range []string{"X-Workspace-Id", "Stream the events of the workspace", `id="schema-App"`, "429"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	if remote := regexp.MustCompile(`(src|href)="(https?:)?//`).FindString(page); remote != "" || strings.Contains(page, "<script") {
		t.Errorf("the page loads an external resource: %q", remote)
	}
}

func TestAnInvalidDocumentIsAnError(t *testing.T) {
	app := fiber.New()
	apidocs.New([]byte("paths: 7")).Mount(app)
	resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/docs", nil), -1)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("%d", resp.StatusCode)
	}
}
