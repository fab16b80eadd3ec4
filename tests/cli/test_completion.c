/*
 * tenon completion: each script answers in its shell, where that shell is installed.
 */
#include "tool.h"

/* What bash would offer for the line. */
static const tool_said *offered(const char *line)
{
    FILE *file = fopen("ask.sh", "w");

    assert_non_null(file);
    fprintf(file,
            "T=${T:?}; tenon() { \"$T\" \"$@\"; }\n"
            "source <(\"$T\" completion bash) || exit 9\n"
            "COMP_LINE='%s'; COMP_POINT=${#COMP_LINE}; read -ra COMP_WORDS <<<\"$COMP_LINE\"\n"
            "case $COMP_LINE in *' ') COMP_WORDS+=('');; esac; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
            "_tenon 2>err-of-completion; printf '%%s\\n' \"${COMPREPLY[@]}\"; cat err-of-completion >&2\n",
            line);
    fclose(file);
    return tool("bash ask.sh");
}

static bool has_line(const char *text, const char *line)
{
    size_t length = strlen(line);

    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && (at[length] == '\n' || !at[length]))
            return true;
    return false;
}

static void in_bash(void **state)
{
    static const struct {
        const char *line, *offers, *not_this;
    } rows[] = {
        {"tenon ", "train", "list"},
        {"tenon ", "plugins", "plugins list"},
        {"tenon tr", "train", "eval"},
        {"tenon plugins ", "list", "train"},
        {"tenon plugins li", "list", "check"},
        {"tenon train --ep", "--epochs", "--lr"},
        {"tenon train zoo:lenet --", "--data", "--report"},
        {"tenon doctor --re", "--report", "--resume"},
        {"tenon train zo", "zoo:lenet", "epochs"},
        {"tenon train zoo:le", "lenet", "zoo:lenet"}, /* bash replaces behind the colon only */
        {"tenon train --progress ", "plain", "zoo:lenet"},
        {"tenon train --progress pl", "plain", "bar"},
        {"tenon train --set train.ep", "train.epochs=", "train.lr="},
        {"tenon train --set engine.type=st", "stepped", "naive"},
        {"tenon train --set train.shuffle=f", "false", "true"},
        {"tenon train --config co", "config.ini", "train"},
        {"tenon train --config 'with bl", "", "train"},
        {"tenon train --out fo", "folder", "config.ini"},
        {"tenon plugins check c", "cpu", "fake"},
        {"tenon plugins check c", "config.ini", "fake"},
        {"tenon plugins inspect c", "cpu", "fake"},
        {"tenon help pl", "plugins", "train"},
        {"tenon help plugins li", "list", "check"},
        {"tenon completion ", "fish", "train"},
        {"tenon nonsense ", "", "train"},
        {"tenon train --epochs ", "", "zoo:lenet"}, /* a number */
        {"tenon train --progress=pl", "plain", "bar"},
    };

    (void)state;
    if (tool("bash -c true")->code) {
        printf("skipped: there is no bash\n");
        skip();
    }
    assert_int_equal(tool("mkdir -p folder; : >config.ini; : >'with blanks'")->code, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[200];
        size_t used = 0;
        const tool_said *s;

        for (const char *c = rows[i].line; *c; c++)
            if (*c != '\'')
                line[used++] = *c;
        line[used] = '\0';
        s = offered(line);
        if (s->code || *s->err || (*rows[i].offers && !has_line(s->out, rows[i].offers)) ||
            has_line(s->out, rows[i].not_this))
            fail_msg("\"%s\": code %d, offers \"%s\", says \"%s\"; expected \"%s\", not \"%s\"", line,
                     s->code, s->out, s->err, rows[i].offers, rows[i].not_this);
    }
    assert_true(has_line(offered("tenon train --config with")->out, "with blanks"));
}

/* Every command and every long option of --help is offered. */
static void nothing_is_left_out(void **state)
{
    const tool_said *s = tool("\"$T\" completion bash >all.bash; \"$T\" completion commands");
    char *commands = strdup(s->out), *script = tool_file("all.bash"), *rest = NULL;

    (void)state;
    assert_int_equal(s->code, 0);
    for (char *name = strtok_r(commands, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        char line[160], *row, *end;

        (void)snprintf(line, sizeof line, "    '%s') echo '", name);
        row = strstr(script, line);
        assert_non_null(row);
        end = strchr(row, '\n');
        (void)snprintf(line, sizeof line, "\"$T\" %s --help", name);
        s = tool(line);
        assert_int_equal(s->code, 0);
        for (const char *o = s->out; (o = strstr(o, "  --")) || (o = NULL);) {
            char option[64];

            o += 2;
            (void)snprintf(option, sizeof option, "%.*s", (int)strspn(o, "-abcdefghijklmnopqrstuvwxyz"), o);
            if (strlen(option) > 2 && (!strstr(row, option) || strstr(row, option) > end))
                fail_msg("%s: %s is not offered", name, option);
        }
    }
    free(commands);
    free(script);
}

/* Lines for zsh and fish; what is offered there is whole words in fish,
 * and in zsh what stands behind a `=`. */
static const struct {
    const char *line, *offers, *not_this;
} rows_of_others[] = {
    {"tenon ", "train", "list"},
    {"tenon ", "help", "plugins list"},
    {"tenon tr", "train", "eval"},
    {"tenon plugins ", "list", "train"},
    {"tenon plugins li", "list", "check"},
    {"tenon help pl", "plugins", "train"},
    {"tenon help plugins li", "list", "check"},
    {"tenon train --ep", "--epochs", "--lr"},
    {"tenon doctor --re", "--report", "--resume"},
    {"tenon plugins list --js", "--json", "--into"},
    {"tenon train zo", "zoo:lenet", "epochs"},
    {"tenon viz zo", "zoo:lenet", "train"},
    {"tenon train --progress pl", "plain", "bar"},
    {"tenon train --progress=pl", "plain", "bar"},
    {"tenon train --set train.ep", "train.epochs", "train.lr"},
    {"tenon train --set engine.type=st", "stepped", "naive"},
    {"tenon train --set=engine.type=st", "stepped", "naive"},
    {"tenon train --set train.shuffle=f", "false", "true"},
    {"tenon train --config co", "config.ini", "train"},
    {"tenon train --out fo", "folder", "config.ini"},
    {"tenon plugins inspect c", "cpu", "check"},
    {"tenon plugins check c", "cpu", "fake"},
    {"tenon plugins check c", "config.ini", "fake"},
    {"tenon ops Convo", "Convolution", "relu"},
    {"tenon explain TN-12", "TN-1204", "TN-3005"},
    {"tenon completion fi", "fish", "train"},
    {"tenon nonsense ", "", "config.ini"},
    {"tenon nonsense ", "", "train"},
    {"tenon version ", "", "config.ini"},
    {"tenon runs list ", "", "config.ini"},
    {"tenon train --epochs ", "", "zoo:lenet"},
};
#define ROWS_OF_OTHERS (sizeof rows_of_others / sizeof *rows_of_others)

/* Each answer stands in the file answer-N, a word per line. */
static void answers_check(const char *shell)
{
    for (size_t i = 0; i < ROWS_OF_OTHERS; i++) {
        char path[32], *said;

        (void)snprintf(path, sizeof path, "answer-%zu", i);
        said = tool_file(path);
        if ((*rows_of_others[i].offers && !has_line(said, rows_of_others[i].offers)) ||
            has_line(said, rows_of_others[i].not_this))
            fail_msg("%s: \"%s\" offers \"%s\"; expected \"%s\", not \"%s\"", shell, rows_of_others[i].line,
                     said, rows_of_others[i].offers, rows_of_others[i].not_this);
        free(said);
    }
    assert_int_equal(tool("rm -f answer-*")->code, 0);
}

static void shell_skip(const char *shell)
{
    char line[64];

    (void)snprintf(line, sizeof line, "command -v %s", shell);
    if (tool(line)->code) {
        printf("skipped: %s is not installed\n", shell);
        skip();
    }
    assert_int_equal(tool("mkdir -p folder path; : >config.ini; ln -sf \"$T\" path/tenon")->code, 0);
}

/* fish tells what it would offer: the word, a tab, what it means. `key=` and `--option=` are cut off. */
static void in_fish(void **state)
{
    FILE *file;

    (void)state;
    shell_skip("fish");
    file = fopen("ask.fish", "w");
    assert_non_null(file);
    fprintf(file, "set -x PATH $PWD/path $PATH\nsource f\n");
    for (size_t i = 0; i < ROWS_OF_OTHERS; i++)
        fprintf(file,
                "complete -C'%s' | string replace -r '\\t.*' '' | string replace -r "
                "'^(--[a-z]*=)?([a-z.]*=(?=.))?'"
                " '' | string replace -r '=$' '' | string replace -r '/$' '' >answer-%zu\n",
                rows_of_others[i].line, i);
    fclose(file);
    assert_int_equal(tool("export HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD; \"$T\" completion fish "
                          ">f && fish -n f")
                         ->code,
                     0);
    assert_string_equal(tool("HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD XDG_CACHE_HOME=$PWD exec "
                             "fish --no-config ask.fish")
                            ->err,
                        "");
    answers_check("fish");
}

/* zsh completes on a terminal only: it gets one of its own, in which compadd writes down what it offers. */
static void zsh_ask(const char *loads)
{
    FILE *file = fopen("ask.zsh", "w");

    assert_non_null(file);
    fprintf(file,
            "zmodload zsh/zpty || exit 9\nzpty z zsh -f -i\n"
            "zpty -w z 'PS1= PS2= LISTMAX=100000; path=($PWD/path $path); setopt no_beep; autoload -Uz "
            "compinit; %s'\n"
            "zpty -w z 'compadd() { local -a o; builtin compadd -O o \"$@\"; print -rl -- $o >>|$out; "
            "builtin compadd "
            "\"$@\" }'\n"
            "zpty -w z 'zle-line-init() { [[ -z $line ]] && return; BUFFER=$line CURSOR=$#line line=; zle "
            "complete-word; "
            "BUFFER=; print -n DO''NE:$out: }; zle -N zle-line-init'\n",
            loads);
    for (size_t i = 0; i < ROWS_OF_OTHERS; i++)
        fprintf(file,
                "zpty -w z 'out=answer-%zu; : >|$out; line=\"%s\"'\nzpty -r z said '*DONE:answer-%zu:*' || "
                "exit 8\n",
                i, rows_of_others[i].line, i);
    fprintf(file, "zpty -d z\n");
    fclose(file);
    assert_int_equal(
        tool("HOME=$PWD ZDOTDIR=$PWD XDG_CONFIG_HOME=$PWD TERM=xterm exec zsh -f ask.zsh")->code,
        0);
    answers_check("zsh");
}

static void in_zsh(void **state)
{
    (void)state;
    shell_skip("zsh");
    assert_int_equal(
        tool("mkdir -p functions && \"$T\" completion zsh >functions/_tenon && zsh -n functions/_tenon")
            ->code,
        0);
    zsh_ask("compinit -u -D; source functions/_tenon");
    zsh_ask("fpath=($PWD/functions $fpath); compinit -u -D"); /* as packages install it */
}

static void other_shells(void **state)
{
    (void)state;
    assert_says(tool("\"$T\" completion zsh")->out, "#compdef tenon");
    assert_says(tool("\"$T\" completion fish")->out, "complete -c tenon");
    assert_int_equal(tool("\"$T\" completion bash | bash -n")->code, 0);
}

static void lists(void **state)
{
    const tool_said *s = tool("\"$T\" completion operators");

    (void)state;
    assert_true(has_line(s->out, "Convolution"));
    assert_true(has_line(tool("\"$T\" completion plugins")->out, "cpu"));
    assert_true(has_line(tool("\"$T\" completion errors")->out, "L05"));
    s = tool("\"$T\" completion keys --json");
    assert_says(s->out, "{\"keys\":[\"");
    s = tool("\"$T\" completion bash --json");
    assert_says(s->out, "{\"shell\":\"bash\",\"script\":\"");
    s = tool("\"$T\" completion bsah");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "did you mean \"bash\"");
    assert_int_equal(tool("\"$T\" completion")->code, 2);
    assert_int_equal(tool("\"$T\" completion bash >/dev/full")->code, 1);
    /* Whoever's configuration is broken still gets completion. */
    assert_int_equal(
        tool("mkdir -p b && cd b && echo '[' >tenon.ini && \"$T\" completion bash >/dev/null")->code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_bash),      cmocka_unit_test(in_fish),
        cmocka_unit_test(in_zsh),       cmocka_unit_test(nothing_is_left_out),
        cmocka_unit_test(other_shells), cmocka_unit_test(lists),
    };
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
