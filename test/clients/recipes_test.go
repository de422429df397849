package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipe is the program of a document in a language, with the server under test for the usual
// one, and what is shown of its output.
func recipe(t *testing.T, document, language string) (program string, shown block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/howto", document))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range fence.FindAllStringSubmatch(string(text), -1) {
		switch {
		case found[1] == language:
			program = strings.ReplaceAll(found[2], "127.0.0.1:4566", serverURL.Host)
		case found[1] == "" && program != "": // its output
			return program, block{shown: found[2]}
		}
	}
	t.Fatalf("%s shows no program and its output", document)
	return "", block{}
}

// TestWatermillRecipe runs the program of docs/howto/watermill.md.
func TestWatermillRecipe(t *testing.T) {
	t.Parallel()
	program, shown := recipe(t, "watermill.md", "go")
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if err != nil || !shown.prints(string(out)) {
		t.Errorf("it prints\n%s\n%v", out, err)
	}
}

// TestSQSConsumerRecipe runs the program of docs/howto/sqs-consumer.md.
func TestSQSConsumerRecipe(t *testing.T) {
	t.Parallel()
	dir := nodeDir(t, nodeModules(t, "the recipe of sqs-consumer"))
	program, shown := recipe(t, "sqs-consumer.md", "js")
	if err := os.WriteFile(filepath.Join(dir, "worker.mjs"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	_, run, _ := strings.Cut(commands(t, "docs/howto/sqs-consumer.md", "", "127.0.0.1:4566", serverURL.Host), "\ngodwit\n") // behind what installs
	if out := paste(t, dir, run); !shown.prints(out) {
		t.Errorf("it prints\n%s", out)
	}
}

// TestRecipesAreRun: each recipe is one of those that tests run.
func TestRecipesAreRun(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	list := regexp.MustCompile(`\[\]string\{("docs/howto/boto3[^}]*)\}`).FindSubmatch(own)
	if list == nil {
		t.Fatal("TestRecipes has no list")
	}
	for _, path := range all {
		switch name := strings.TrimSuffix(filepath.Base(path), ".md"); name {
		case "watermill", "sqs-consumer":
		default:
			if !strings.Contains(string(list[1]), `"docs/howto/`+name+`.md"`) {
				t.Errorf("no test runs %s", name)
			}
		}
	}
}
