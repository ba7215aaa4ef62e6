package skeleton_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/skeleton"
	"github.com/ropewalk/ropewalk/plugins"
)

func TestTheModuleUsesAReleaseOfTheSDK(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	o := skeleton.Options{Language: "go", Kind: plugins.KindAuth, Name: "demo", SDK: skeleton.SDK{Version: "1.2.3"}} // the format of a release build's version
	if err := skeleton.Write(dir, o); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "module example.com/demo\n\ngo 1.26.0\n\nrequire github.com/ropewalk/ropewalk v1.2.3\n"; string(raw) != want {
		t.Errorf("go.mod is\n%s\nwant\n%s", raw, want)
	}
}

func TestOnlyAReleaseVersionIsTreatedAsARelease(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3": "v1.2.3", "v1.2.3": "v1.2.3", "1.2.3-rc.1": "v1.2.3-rc.1", "v0.0.0-20261122160000-0123456789ab": "v0.0.0-20261122160000-0123456789ab",
		"dev": "", "": "", "1.2": "", "d95f6fb": "", "v1.2.3-4-gd95f6fb": "", "v1.2.3-4-gd95f6fb-dirty": "", "v1.2.3-dirty": "", "v1.2.3+dirty": "",
	} {
		if got := skeleton.Release(version); got != want {
			t.Errorf("%q is the release %q, want %q", version, got, want)
		}
	}
}

func TestAnUnreleasedBuildOutsideACheckoutAsksForTheSDK(t *testing.T) {
	o := skeleton.Options{Language: "go", Kind: plugins.KindAuth, Name: "demo", SDK: skeleton.SDK{Version: "dev"}}
	if err := skeleton.Write(filepath.Join(t.TempDir(), "demo"), o); err == nil || !strings.Contains(err.Error(), "--sdk") {
		t.Errorf("got %v", err)
	}
}

func TestTheBinaryFindsTheCheckoutItWasBuiltFrom(t *testing.T) {
	want, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if got := skeleton.Checkout(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAProjectSaysHowToTestAStoreWithABackend(t *testing.T) {
	for _, language := range skeleton.Languages() {
		dir := filepath.Join(t.TempDir(), "demo")
		if err := skeleton.Write(dir, skeleton.Options{Language: language, Kind: plugins.KindSessionStore, Name: "demo", SDK: skeleton.SDK{Version: "1.2.3"}}); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"README.md", ".github/workflows/ci.yaml"} {
			raw, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"--backend none", "--backend HOST:PORT", "${backend}"} {
				if !strings.Contains(string(raw), want) {
					t.Errorf("%s in %s does not say %q:\n%s", file, language, want, raw)
				}
			}
		}
	}
}
