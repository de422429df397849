package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/test/programs"
)

// TestFormula: what the formula for Homebrew takes from an archive is there, and the program can do
// what it is asked to.
func TestFormula(t *testing.T) {
	r := readRelease(t)
	if len(r.Formulas) != 1 || len(r.Archives) != 1 {
		t.Fatalf("there are %d formulas, of %d archives", len(r.Formulas), len(r.Archives))
	}
	f := r.Formulas[0]
	manuals := false
	for _, file := range r.Archives[0].Files {
		manuals = manuals || file.Src == "bin/man/*.1.gz" && file.Destination == "man"
	}
	if !manuals || !strings.Contains(f.Install, `man1.install Dir["man/*.1.gz"]`+"\n") || !strings.Contains(f.Install, `bin.install "godwit"`+"\n") {
		t.Errorf("of the archive's files it takes\n%s", f.Install)
	}
	shells := regexp.MustCompile(`generate_completions_from_executable\(bin/"godwit", "completion", shells: \[(.*)\]\)`).FindStringSubmatch(f.Install)
	if shells == nil {
		t.Fatalf("it makes no completions:\n%s", f.Install)
	}
	for shell := range strings.SplitSeq(shells[1], ", ") {
		if printed(t, exec.Command(binary, "completion", strings.TrimPrefix(shell, ":"))) == "" {
			t.Errorf("there are no completions for %s", shell)
		}
	}
	service := regexp.MustCompile(`(?m)^run \[opt_bin/"godwit", (.*)\]$`).FindStringSubmatch(f.Service)
	if service == nil {
		t.Fatalf("its service runs nothing:\n%s", f.Service)
	}
	addr := freeAddress(t)
	args := strings.Split(strings.NewReplacer(`var/"godwit"`, filepath.Join(t.TempDir(), "godwit"), `"`, "").Replace(service[1]), ", ")
	launch(t, addr, exec.Command(binary, append(args, "--listen", addr)...)).awaitReady(t)
	// version is that of the snapshot, or of the tag: TestReleasedVersion.
	if !strings.Contains(f.Test, `assert_match "godwit #{version.to_s.split("+").first}", shell_output("#{bin}/godwit --version")`) ||
		!strings.Contains(printed(t, exec.Command(binary, "--version")), "godwit "+config.Version) {
		t.Errorf("its test is\n%s", f.Test)
	}
}

// TestRelease has goreleaser make all that is released, of what is committed. The first time it
// compiles everything for four platforms, which may take half an hour: so it runs where make
// release has put goreleaser, and after that has filled Go's cache.
func TestRelease(t *testing.T) {
	programs.Need(t, "goreleaser", "git", "tar", "dpkg-deb")
	pinned, err := os.ReadFile(filepath.Join(top, "tools", "goreleaser", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^\s+github\.com/goreleaser/goreleaser/v2 (v\S+)`).FindStringSubmatch(string(pinned))[1]
	if got := printed(t, exec.Command("goreleaser", "--version")); !strings.Contains(got, version+"\n") {
		programs.Skip(t, "goreleaser is not "+version)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	printed(t, exec.Command("git", "clone", "--quiet", top, clone))
	release := exec.CommandContext(t.Context(), "goreleaser", "release", "--snapshot", "--clean")
	release.Dir = clone
	printed(t, release)

	commit := exec.Command("git", "rev-parse", "--short=8", "HEAD")
	commit.Dir = clone
	version = config.Version + "+" + strings.TrimSpace(printed(t, commit))
	dist := filepath.Join(clone, "dist")
	var want []string
	for _, system := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		want = append(want, fmt.Sprintf("godwit_%s_%s.tar.gz", version, system), fmt.Sprintf("godwit_%s_%s.cdx.json", version, system))
		if strings.HasPrefix(system, "linux") {
			want = append(want, fmt.Sprintf("godwit_%s_%s.deb", version, system), fmt.Sprintf("godwit_%s_%s.rpm", version, system))
		}
	}
	var sums []string
	text, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums = append(sums, name)
		file, err := os.ReadFile(filepath.Join(dist, name))
		if got := sha256.Sum256(file); err != nil || hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another checksum: %v", name, err)
		}
	}
	slices.Sort(want)
	if slices.Sort(sums); !slices.Equal(sums, want) {
		t.Fatalf("there is\n%s\nand want\n%s", strings.Join(sums, "\n"), strings.Join(want, "\n"))
	}

	archive, unpacked := filepath.Join(dist, "godwit_"+version+"_linux_amd64.tar.gz"), t.TempDir()
	got := strings.Fields(printed(t, exec.Command("tar", "-tzf", archive)))
	got = slices.DeleteFunc(got, func(name string) bool { return strings.HasPrefix(name, "man/godwit-") })
	if !slices.Equal(slices.Sorted(slices.Values(got)),
		[]string{"CHANGELOG.md", "LICENSE", "README.md", "deploy/logrotate/godwit", "deploy/systemd/godwit.service", "godwit", "man/godwit.1.gz"}) {
		t.Errorf("the archive has %v", got)
	}
	printed(t, exec.Command("tar", "-C", unpacked, "-xzf", archive))
	if got := printed(t, exec.Command(filepath.Join(unpacked, "godwit"), "--version")); !strings.HasPrefix(got, "godwit "+config.Version+" ") {
		t.Errorf("the program says %s", got)
	}

	deb := filepath.Join(dist, "godwit_"+version+"_linux_amd64.deb")
	if got := inDeb(t, deb); !slices.Equal(got, contents) {
		t.Errorf("the package has\n%s", strings.Join(got, "\n"))
	}
	if got := printed(t, exec.Command("dpkg-deb", "--field", deb, "Version")); got != strings.Replace(version, "-", "~", 1)+"\n" {
		t.Errorf("the package has the version %s", got)
	}

	formula, err := os.ReadFile(filepath.Join(dist, "homebrew", "Formula", "godwit.rb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		name := fmt.Sprintf("godwit_%s_%s.tar.gz", version, system)
		file, err := os.ReadFile(filepath.Join(dist, name))
		want := regexp.MustCompile(fmt.Sprintf(`/%s"\s+sha256 "%x"`, regexp.QuoteMeta(name), sha256.Sum256(file)))
		if err != nil || !want.Match(formula) {
			t.Errorf("the formula has no %s: %v\n%s", want, err, formula)
		}
	}

	var bom struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name, Version, PURL string }
	}
	text, err = os.ReadFile(filepath.Join(dist, "godwit_"+version+"_linux_amd64.cdx.json"))
	if err == nil {
		err = json.Unmarshal(text, &bom)
	}
	if err != nil || bom.Format != "CycloneDX" {
		t.Fatalf("the SBOM: %v, %s", err, bom.Format)
	}
	mod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	pebble := regexp.MustCompile(`github\.com/cockroachdb/pebble\S* v\S+`).FindString(string(mod))
	if !slices.ContainsFunc(bom.Components, func(c struct{ Name, Version, PURL string }) bool { return c.Name+" "+c.Version == pebble }) {
		t.Errorf("the SBOM lacks %s, and has %v", pebble, bom.Components)
	}
}
