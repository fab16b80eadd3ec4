/*
 * tenon completion: scripts for shells, made from the tables of commands and options; names that depend on
 * what is installed (plugins) are asked for when they are needed.
 *
 * What completes a value is read from the value's name in the table: "FILE", "bar|plain",
 * "SECTION.KEY=VALUE". The three scripts are one walk over the tables with the words of three shells.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define TEXT_MAX_BYTES 65536 /* of one list of names */

/* ---- lists of names ---- */

typedef struct names {
    char text[TEXT_MAX_BYTES]; /* one name in a line */
    size_t used;
} names;

static void name_add(names *n, const char *name)
{
    if (n->used + strlen(name) + 2 < sizeof n->text)
        n->used += (size_t)snprintf(n->text + n->used, sizeof n->text - n->used, "%s\n", name);
}

/* A context of the library as it is installed: nobody's configuration, and nothing is loaded. */
static tn_ctx *plain_ctx(void)
{
    tn_open_options options = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM};
    tn_ctx *ctx = NULL;

    return tn_open(&options, &ctx) ? NULL : ctx;
}

static void commands_list(names *n)
{
    for (const cli_command *c = cli_commands; c->name; c++)
        name_add(n, c->name);
}

static void keys_list(names *n)
{
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (!tn_option_at(i, &o) && !strchr(o.key, '*'))
            name_add(n, o.key);
    }
}

static void models_list(names *n)
{
    char name[80];

    for (const char *const *zoo = tn_net_zoo_names(); *zoo; zoo++) {
        (void)snprintf(name, sizeof name, "zoo:%.70s", *zoo);
        name_add(n, name);
    }
}

static void operators_list(names *n)
{
    tn_ctx *ctx = plain_ctx();
    size_t count = 0;

    if (ctx)
        (void)tn_op_count(ctx, &count);
    for (size_t i = 0; i < count; i++) {
        tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};

        if (!tn_op_at(ctx, i, &o) && o.name[0] != '_')
            name_add(n, o.name);
    }
    (void)tn_close(ctx);
}

static void plugins_list(names *n)
{
    tn_open_options options = {.struct_size = TN_SIZE(tn_open_options),
                               .settings =
                                   (const char *const[]){"plugins.require=", "device.default=cpu", NULL}};
    tn_ctx *ctx = NULL;
    size_t count = 0;

    if (!tn_open(&options, &ctx))
        (void)tn_plugin_count(ctx, &count);
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (!tn_plugin_at(ctx, i, &p) && (p.state == TN_PLUGIN_READY || p.state == TN_PLUGIN_LOADED))
            name_add(n, p.name);
    }
    (void)tn_close(ctx);
}

static void errors_list(names *n)
{
    for (size_t i = 0; i < tn_error_count(); i++) {
        tn_error_info e = {.struct_size = TN_SIZE(tn_error_info)};
        char text[32];

        if (tn_error_at(i, &e))
            continue;
        (void)snprintf(text, sizeof text, "TN-%04u", (unsigned)e.number);
        name_add(n, text);
        (void)snprintf(text, sizeof text, "L%02u", (unsigned)e.refusal);
        if (e.refusal)
            name_add(n, text);
    }
}

static const struct {
    const char *name;
    void (*list)(names *n);
    bool asked; /* not written into the scripts: another installation has others */
} lists[] = {
    {"commands", commands_list, false},   {"keys", keys_list, false},      {"models", models_list, false},
    {"operators", operators_list, false}, {"plugins", plugins_list, true}, {"errors", errors_list, false},
};
#define LISTS (sizeof lists / sizeof *lists)

static names *list_make(size_t index)
{
    names *n = calloc(1, sizeof *n);

    if (n)
        lists[index].list(n);
    else
        cli_error("out of memory");
    return n;
}

/* ---- what completes a value ---- */

/* A part of a value's name in the tables, and what it stands for: a list above, files, folders. */
static const struct {
    const char *part, *kind;
} kinds[] = {
    {"zoo:", "models"},        {"MODEL", "files"},    {"FILE", "files"},        {".ini", "files"},
    {".params", "files"},      {"FOLDER", "folders"}, {"RUN", "folders"},       {"SECTION.KEY", "keys"},
    {"OPERATOR", "operators"}, {"PLUGIN", "plugins"}, {"FILE|NAME", "plugins"}, {"NAME|FILE", "plugins"},
    {"COMMAND", "commands"},   {"TN-", "errors"},     {"CODE", "errors"},       {"NAME|FOLDER", "folders"},
    {"PATH", "files"},
};

/* Every alternative of "bar|plain|json" is a plain word: these are the values. */
static bool is_choice(const char *value)
{
    return strchr(value, '|') && strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789|-_") == strlen(value);
}

/* Writes "choice:a|b" or the kinds with blanks between, each once. */
static void kinds_of(const char *value, char *out, size_t bytes)
{
    char plain[200];
    size_t used = 0, length = 0;

    for (const char *c = value; *c && length + 1 < sizeof plain; c++)
        if (*c != '[' && *c != ']' && *c != '.')
            plain[length++] = *c;
    plain[length] = '\0';
    out[0] = '\0';
    if (is_choice(plain)) {
        (void)snprintf(out, bytes, "choice:%s", plain);
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && used < bytes; i++)
        if (strstr(value, kinds[i].part) && !strstr(out, kinds[i].kind))
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? " " : "", kinds[i].kind);
}

/* ---- a command's options ---- */

/* The options of a command: its own, then those of every command. Returns OPT_NONE at the end. */
static uint8_t option_at(const cli_command *command, size_t index)
{
    size_t own = 0;

    while (command->options[own] != OPT_NONE)
        own++;
    return index < own ? command->options[index] : cli_common_options[index - own];
}

/* ---- bash and zsh: the same functions, as both read them ---- */

static FILE *to; /* where a script goes */

static void lists_print(void)
{
    for (size_t i = 0; i < LISTS; i++) {
        names *n = lists[i].asked ? NULL : list_make(i);

        if (n)
            (void)fprintf(to, "_tenon_%s='%.*s'\n", lists[i].name, (int)(n->used ? n->used - 1 : 0), n->text);
        free(n);
    }
}

/* Whether the list holds another command of the same group before this one. */
static bool options_known(const cli_command *command, uint8_t id)
{
    for (const cli_command *c = cli_commands; c < command; c++)
        for (size_t i = 0; option_at(c, i) != OPT_NONE; i++)
            if (option_at(c, i) == id)
                return true;
    return false;
}

static void cases_print(void)
{
    char kind[256];

    (void)fprintf(to, "_tenon_options() {\n    case \"$1\" in\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        (void)fprintf(to, "    '%s') echo '", c->name);
        for (size_t i = 0; option_at(c, i) != OPT_NONE; i++)
            (void)fprintf(to, "%s--%s", i ? " " : "", cli_options[option_at(c, i)].name);
        (void)fprintf(to, "' ;;\n");
    }
    (void)fprintf(to, "    esac\n}\n_tenon_value() {\n    case \"$1\" in\n");
    for (const cli_command *c = cli_commands; c->name; c++)
        for (size_t i = 0; option_at(c, i) != OPT_NONE; i++) {
            const cli_option *o = &cli_options[option_at(c, i)];

            if (!o->value || options_known(c, option_at(c, i)))
                continue;
            kinds_of(o->value, kind, sizeof kind);
            (void)fprintf(to, "    --%s) echo '%s' ;;\n", o->name, *kind ? kind : "nothing");
        }
    (void)fprintf(to, "    esac\n}\n_tenon_words() {\n    case \"$1\" in\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        kinds_of(c->words, kind, sizeof kind);
        if (*kind)
            (void)fprintf(to, "    '%s') echo '%s' ;;\n", c->name, kind);
    }
    (void)fprintf(to, "    esac\n}\n_tenon_choices() {\n    case \"$1\" in\n");
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (tn_option_at(i, &o) || strchr(o.key, '*'))
            continue;
        if (!strcmp(o.type, "choice") || !strcmp(o.type, "bool"))
            (void)fprintf(to, "    %s) echo '%s' ;;\n", o.key, *o.type == 'b' ? "true|false" : o.choices);
    }
    (void)fprintf(to, "    esac\n}\n");
}

static const char bash_end[] =
    "_tenon_kind() { # what completes $2 where the table says $1\n"
    "    case \"$1\" in\n"
    "    files) compgen -f -- \"$2\" ;;\n"
    "    folders) compgen -d -- \"$2\" ;;\n"
    "    commands) compgen -W \"${_tenon_commands//$'\\n'/ }\" -- \"$2\" ;;\n"
    "    models) compgen -W \"$_tenon_models\" -- \"$2\" ;;\n"
    "    operators) compgen -W \"$_tenon_operators\" -- \"$2\" ;;\n"
    "    errors) compgen -W \"$_tenon_errors\" -- \"$2\" ;;\n"
    "    plugins) compgen -W \"$(\"$3\" completion plugins 2>/dev/null)\" -- \"$2\" ;;\n"
    "    choice:*) compgen -W \"$(printf '%s' \"${1#choice:}\" | tr '|' ' ')\" -- \"$2\" ;;\n"
    "    keys)\n"
    "        case $2 in\n"
    "        *=*) compgen -P \"${2%%=*}=\" -W \"$(_tenon_choices \"${2%%=*}\" | tr '|' ' ')\" -- \"${2#*=}\" "
    ";;\n"
    "        *) compgen -S = -W \"$_tenon_keys\" -- \"$2\" ;;\n"
    "        esac ;;\n"
    "    esac\n"
    "}\n"
    "_tenon() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} now='' before='' command='' kind kinds i cut\n"
    "    local -a words\n"
    "    read -ra words <<<\"$line\" # our own words: bash cuts at : and =\n"
    "    case $line in\n"
    "    *[[:space:]]) ;;\n"
    "    *) now=${words[${#words[@]}-1]} && unset \"words[${#words[@]}-1]\" ;;\n"
    "    esac\n"
    "    [ \"${words[1]}\" = help ] && words=(\"${words[0]}\" \"${words[@]:2}\")\n"
    "    [ ${#words[@]} -gt 1 ] && before=${words[${#words[@]}-1]}\n"
    "    case $now in --*=*) before=${now%%=*} now=${now#*=} ;; esac\n"
    "    case $'\\n'$_tenon_commands$'\\n' in\n"
    "    *$'\\n'\"${words[1]} ${words[2]}\"$'\\n'*) command=\"${words[1]} ${words[2]}\" ;;\n"
    "    *$'\\n'\"${words[1]}\"$'\\n'*) command=${words[1]} ;;\n"
    "    esac\n"
    "    COMPREPLY=()\n"
    "    if [ -z \"$command\" ]; then\n"
    "        if [ ${#words[@]} -le 1 ]; then\n"
    "            kinds=$(cut -d' ' -f1 <<<\"$_tenon_commands\" | sort -u)\n"
    "            COMPREPLY=($(compgen -W \"$kinds help --help --version\" -- \"$now\"))\n"
    "        elif [ ${#words[@]} -eq 2 ]; then\n"
    "            kinds=$(sed -n \"s/^${words[1]} //p\" <<<\"$_tenon_commands\")\n"
    "            COMPREPLY=($(compgen -W \"$kinds\" -- \"$now\"))\n"
    "        fi\n"
    "        return\n"
    "    fi\n"
    "    case $before in -*) kinds=$(_tenon_value \"$before\") ;; esac\n"
    "    if [ -z \"$kinds\" ]; then\n"
    "        case $now in\n"
    "        -*) COMPREPLY=($(compgen -W \"$(_tenon_options \"$command\")\" -- \"$now\")) && return ;;\n"
    "        esac\n"
    "        kinds=$(_tenon_words \"$command\")\n"
    "    fi\n"
    "    for kind in $kinds; do\n"
    "        local IFS=$'\\n'\n"
    "        COMPREPLY+=($(IFS=$' \\t\\n' _tenon_kind \"$kind\" \"$now\" \"${words[0]}\"))\n"
    "        case $kind in\n"
    "        files | folders) compopt -o filenames 2>/dev/null ;;\n"
    "        keys) compopt -o nospace 2>/dev/null ;;\n"
    "        esac\n"
    "    done\n"
    "    cut=${now%\"${now##*[:=]}\"} # bash replaces what stands behind the last : or = only\n"
    "    for i in \"${!COMPREPLY[@]}\"; do COMPREPLY[i]=${COMPREPLY[i]#\"$cut\"}; done\n"
    "}\n"
    "complete -F _tenon tenon\n";

static void bash_print(void)
{
    (void)fprintf(to, "# Completion of tenon %s for bash; made by `tenon completion bash`.\n", tn_version());
    lists_print();
    cases_print();
    (void)fputs(bash_end, to);
}

static const char zsh_end[] =
    "_tenon_kind() {\n"
    "    case \"$1\" in\n"
    "    files) _files ;;\n"
    "    folders) _files -/ ;;\n"
    "    commands) compadd -- ${(f)_tenon_commands} ;;\n"
    "    models) compadd -- ${(f)_tenon_models} ;;\n"
    "    operators) compadd -- ${(f)_tenon_operators} ;;\n"
    "    errors) compadd -- ${(f)_tenon_errors} ;;\n"
    "    plugins) compadd -- ${(f)\"$(tenon completion plugins 2>/dev/null)\"} ;;\n"
    "    choice:*) compadd -- ${(s:|:)${1#choice:}} ;;\n"
    "    keys)\n"
    "        if compset -P 1 '*='; then\n"
    "            compadd -- ${(s:|:)\"$(_tenon_choices ${${IPREFIX%=}##*=})\"}\n"
    "        else\n"
    "            compadd -S = -- ${(f)_tenon_keys}\n"
    "        fi ;;\n"
    "    esac\n"
    "}\n"
    "_tenon() {\n"
    "    local command kinds kind\n"
    "    local -a all\n"
    "    all=(${(f)_tenon_commands})\n"
    "    if [[ $words[2] == help ]] && (( CURRENT > 2 )); then\n"
    "        shift words\n"
    "        (( CURRENT-- ))\n"
    "    fi\n"
    "    if (( CURRENT == 2 )); then\n"
    "        compadd -- ${(u)all%% *} help --help --version\n"
    "        return\n"
    "    fi\n"
    "    if (( ${all[(Ie)$words[2]]} )); then\n"
    "        command=$words[2]\n"
    "    elif (( CURRENT == 3 )); then\n"
    "        compadd -- ${${(M)all:#$words[2] *}#* }\n"
    "        return\n"
    "    else\n"
    "        command=\"$words[2] $words[3]\"\n"
    "    fi\n"
    "    if [[ $PREFIX == --*=* ]]; then\n"
    "        kinds=$(_tenon_value ${PREFIX%%=*})\n"
    "        compset -P 1 '*='\n"
    "    elif [[ $words[CURRENT-1] == -* ]]; then\n"
    "        kinds=$(_tenon_value $words[CURRENT-1])\n"
    "    fi\n"
    "    if [[ -z $kinds && $PREFIX == -* ]]; then\n"
    "        compadd -- ${=\"$(_tenon_options $command)\"}\n"
    "        return\n"
    "    fi\n"
    "    [[ -z $kinds ]] && kinds=$(_tenon_words $command)\n"
    "    for kind in ${=kinds}; do _tenon_kind $kind; done\n"
    "}\n"
    "if [[ $funcstack[1] == _tenon ]]; then _tenon \"$@\"; else compdef _tenon tenon; fi\n";

static void zsh_print(void)
{
    (void)fprintf(to, "#compdef tenon\n# Completion of tenon %s for zsh; made by `tenon completion zsh`.\n",
                  tn_version());
    lists_print();
    cases_print();
    (void)fputs(zsh_end, to);
}

/* ---- fish ---- */

/* Prints the text between single quotes, as fish reads them. */
static void quoted(const char *text)
{
    (void)fputc('\'', to);
    for (; *text; text++)
        (void)fprintf(to, *text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    (void)fputc('\'', to);
}

/* Words of the table between blanks instead of bars. */
static void choices_print(const char *choices)
{
    for (const char *c = choices; *c; c++)
        (void)fputc(*c == '|' ? ' ' : *c, to);
}

/* The list's names with blanks between, or what asks for them. */
static void fish_list(size_t index)
{
    names *n;

    if (!strcmp(lists[index].name, "keys")) {
        (void)fprintf(to, " (__tenon_keys)");
    } else if (lists[index].asked) {
        (void)fprintf(to, " (tenon completion %s 2>/dev/null)", lists[index].name);
    } else if ((n = list_make(index))) {
        for (const char *c = n->text; *c; c += strcspn(c, "\n") + 1)
            (void)fprintf(to, " %.*s", (int)strcspn(c, "\n"), c);
        free(n);
    }
}

/* All words that complete a kind, in one -a: fish takes the last. Files are another option. */
static void fish_kind(const char *kind)
{
    (void)fprintf(to, " -a '");
    for (size_t i = 0; i < LISTS; i++)
        if (strncmp(kind, "choice:", 7) != 0 && strstr(kind, lists[i].name))
            fish_list(i);
    if (!strncmp(kind, "choice:", 7))
        choices_print(kind + 7);
    if (strstr(kind, "folders"))
        (void)fprintf(to, " (__fish_complete_directories)");
    (void)fprintf(to, strstr(kind, "files") ? "' -F" : "' -f");
}

/* Where the command line stands; `help` in front of a command changes nothing. */
static const char fish_begin[] = "function __tenon_words\n"
                                 "    set -l words (commandline -opc)\n"
                                 "    set -e words[1]\n"
                                 "    test \"$words[1]\" = help; and set -e words[1]\n"
                                 "    string join -- ' ' $words\n"
                                 "end\n"
                                 "function __tenon_next # these words stand there, no more\n"
                                 "    test (__tenon_words | string collect -a) = \"$argv\"\n"
                                 "end\n"
                                 "function __tenon_at # it begins with these words\n"
                                 "    string match -q -- \"$argv *\" (__tenon_words | string collect -a)' '\n"
                                 "end\n"
                                 "function __tenon_keys # KEY=VALUE\n"
                                 "    set -l now (commandline -ct | string replace -r -- '^--[a-z-]*=' '')\n"
                                 "    if not string match -q -- '*=*' \"$now\"\n"
                                 "        __tenon_names\n"
                                 "        return\n"
                                 "    end\n"
                                 "    set -l key (string split -m 1 -- = $now)[1]\n"
                                 "    set -l values (__tenon_choices $key)\n"
                                 "    test -n \"$values\"; and string replace -r -- '^' \"$key=\" $values\n"
                                 "end\n"
                                 "complete -c tenon -f\n"
                                 "complete -c tenon -n __tenon_next -a help -d 'help of a command'\n"
                                 "complete -c tenon -n __tenon_next -l help -d 'all commands'\n"
                                 "complete -c tenon -n __tenon_next -l version -d 'the version'\n";

static void fish_options(void)
{
    (void)fprintf(to, "function __tenon_names\n    printf '%%s=\\n'");
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (!tn_option_at(i, &o) && !strchr(o.key, '*'))
            (void)fprintf(to, " %s", o.key);
    }
    (void)fprintf(to, "\nend\nfunction __tenon_choices\n    switch $argv[1]\n");
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (tn_option_at(i, &o) || strchr(o.key, '*') || (strcmp(o.type, "choice") && strcmp(o.type, "bool")))
            continue;
        (void)fprintf(to, "        case %s\n            printf '%%s\\n' ", o.key);
        choices_print(*o.type == 'b' ? "true|false" : o.choices);
        (void)fprintf(to, "\n");
    }
    (void)fprintf(to, "    end\nend\n");
}

static void fish_option(const cli_command *c, const cli_option *o)
{
    char kind[256];

    (void)fprintf(to, "complete -c tenon -n '__tenon_at %s' -l %s", c->name, o->name);
    if (o->letter)
        (void)fprintf(to, " -s %c", o->letter);
    if (o->value) {
        kinds_of(o->value, kind, sizeof kind);
        (void)fprintf(to, cli_option_may_stand_alone(o) ? "" : " -r");
        fish_kind(kind);
    }
    (void)fprintf(to, " -d ");
    quoted(o->help);
    (void)fprintf(to, "\n");
}

static void fish_command(const cli_command *c)
{
    const size_t first = strcspn(c->name, " ");
    char kind[256];

    if (!c->name[first]) {
        (void)fprintf(to, "complete -c tenon -n __tenon_next -a %s -d ", c->name);
    } else {
        if (c == cli_commands || strncmp(c[-1].name, c->name, first + 1) != 0)
            (void)fprintf(to, "complete -c tenon -n __tenon_next -a %.*s -d 'more commands'\n", (int)first,
                          c->name);
        (void)fprintf(to, "complete -c tenon -n '__tenon_next %.*s' -a %s -d ", (int)first, c->name,
                      c->name + first + 1);
    }
    quoted(c->summary);
    (void)fprintf(to, "\n");
    kinds_of(c->words, kind, sizeof kind);
    if (*kind) {
        (void)fprintf(to, "complete -c tenon -n '__tenon_at %s'", c->name);
        fish_kind(kind);
        (void)fprintf(to, "\n");
    }
    for (size_t i = 0; option_at(c, i) != OPT_NONE; i++)
        fish_option(c, &cli_options[option_at(c, i)]);
}

static void fish_print(void)
{
    (void)fprintf(to, "# Completion of tenon %s for fish; made by `tenon completion fish`.\n%s", tn_version(),
                  fish_begin);
    fish_options();
    for (const cli_command *c = cli_commands; c->name; c++)
        fish_command(c);
}

/* ---- the command ---- */

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", bash_print}, {"zsh", zsh_print}, {"fish", fish_print}};
#define SHELLS (sizeof shells / sizeof *shells)

static const char *asked_name(const void *from, size_t index)
{
    (void)from;
    if (index < SHELLS)
        return shells[index].name;
    return index < SHELLS + LISTS ? lists[index - SHELLS].name : NULL;
}

/* One of the lists, a name in a line. */
static int list_print(size_t index, bool json)
{
    names *n = list_make(index);
    json_t *list = json_array();

    if (!n) {
        json_decref(list);
        return CLI_EXIT_MEMORY;
    }
    for (char *at = n->text; json && *at; at += strcspn(at, "\n") + 1)
        (void)json_array_append_new(list, json_stringn(at, strcspn(at, "\n")));
    if (json)
        cli_json_line(json_pack("{s:O}", lists[index].name, list));
    else
        (void)fputs(n->text, stdout);
    json_decref(list);
    free(n);
    return 0;
}

static int script_print(size_t index, bool json)
{
    char *text = NULL;
    size_t bytes = 0;

    to = json ? open_memstream(&text, &bytes) : stdout;
    if (!to) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    shells[index].print();
    if (json) {
        (void)fclose(to);
        cli_json_line(json_pack("{s:s, s:o}", "shell", shells[index].name, "script", cli_json_text(text)));
        free(text);
    }
    return 0;
}

int cmd_completion(const cli_args *args)
{
    const char *word = args->words[0];
    char similar[CLI_SIMILAR_BYTES];
    bool json = args->value[OPT_JSON] != NULL;

    for (size_t i = 0; i < LISTS; i++)
        if (!strcmp(word, lists[i].name))
            return list_print(i, json);
    for (size_t i = 0; i < SHELLS; i++)
        if (!strcmp(word, shells[i].name))
            return script_print(i, json);
    cli_error("completion %s: bash, zsh, fish, or a list of names is needed%s", word,
              cli_similar_text(cli_nearest(word, asked_name, NULL), similar));
    return CLI_EXIT_USAGE;
}
