/*
 * Shape rules as text: what they infer forwards and backwards, what they say of shapes that do not fit, and
 * which texts are refused.
 */
#include "rule_bench.h"

/* ---- shapes ----------------------------------------------------------------------------------- */

#define NORM "data:(A..,C:channels@axis,B..) gamma:(C) -> output:data mean~flag:(C)"
#define DENSE                                                                                                \
    "[!flag] data:(N,I..) weight:(n,#I) -> output:(N,n) | data:(B..,I) weight:(n,I) -> output:(B..,n)"
#define CONCAT "arg*:(A..,D'@axis,B..) -> output:(A..,+D'@axis,B..)"
#define MIXED "a?flag:(N) b*:(M) -> c:(M)"
#define SUMS "[flag] arg*:(A..,D'@axis,B..) -> output:(A..,+D'@axis,B..) | arg*:(D',B..) -> output:(+D',B..)"
#define DOT "lhs:(K,A..)?flag/(A..,K) rhs:(K,B..) -> output:(A..,B..)"

static const struct {
    const char *rule, *attrs, *given,
        *wanted; /* attrs "np": 0-d arrays exist; wanted begins with '!': the error says this */
} shape_cases[] = {
    /* both directions */
    {CONV, "", "2,3,8,8 ? ? -> ?", "2,3,8,8 4,3,3,3 4 -> 2,4,6,6"},
    {CONV, "no_bias=1", "2,3,8,8 ? -> ?", "2,3,8,8 4,3,3,3 -> 2,4,6,6"},
    {CONV, "layout=NHWC", "2,8,9,3 ? ? -> ?", "2,8,9,3 4,3,3,3 4 -> 2,6,7,4"},
    {CONV, "", "? 4,5,3,3 ? -> 2,4,6,7", "2,5,8,9 4,5,3,3 4 -> 2,4,6,7"},
    {CONV, "stride=(2,2) pad=(1,1)", "? 4,5,3,3 ? -> 2,4,6,7", "2,5,?,? 4,5,3,3 4 -> 2,4,6,7"},
    {CONV, "", "?,?,8,8 4,5,3,3 ? -> 7,?,?,?", "7,5,8,8 4,5,3,3 4 -> 7,4,6,6"},
    {CONV, "", "2,3,8,8 4,2,3,3 ? -> ?", "!C = 3 channels being dimension 1 of data (2, 3, 8, 8)"},
    {CONV, "", "2,3,8 ? ? -> ?", "!data (2, 3, 8) has 3 dimensions"},
    {CONV, "", "2,3,2,8 ? ? -> ?", "!larger than the input"},
    {CONV, "layout=NHWC kernel=(3,)", "? ? ? -> ?", "!layout is for 4 dimensions"},
    {CONV, "kernel=(3,3,3,3)", "? ? ? -> ?", "!1 to 3 are allowed"},
    {CONV, "stride=(2,)", "? ? ? -> ?", "!stride has 1 dimensions, kernel has 2"},
    {CONV, "", "? ? ? -> ?", "?,?,?,? 4,?,3,3 4 -> ?,4,?,?"},
    {CONV, "", "? 4,5,3,3 ? -> ?", "?,5,?,? 4,5,3,3 4 -> ?,4,?,?"},
    {CONV, "", "? ? ? -> 2,4,6,6,6", "!output (2, 4, 6, 6, 6) has 5 dimensions"},
    {NORM, "", "2,8,5 ? -> ? ?", "2,8,5 8 -> 2,8,5 8"},
    {NORM, "axis=-1", "2,8,5 ? -> ? ?", "2,8,5 5 -> 2,8,5 5"},
    {NORM, "", "2,?,5 ? -> ? 8", "2,8,5 8 -> 2,8,5 8"},
    {NORM, "", "? ? -> 2,8 ?", "2,8 8 -> 2,8 8"},
    {NORM, "axis=3", "2,8,5 ? -> ? ?", "!axis 3, but the input has 3 dimensions"},
    {NORM, "", "2,8,5 7 -> ? ?",
     "!gamma (7,): dimension 0 should be C = 8, C = 8 channels being dimension 1"},
    {DENSE, "", "2,3,4 ? -> ?", "2,3,4 4,12 -> 2,4"},
    {DENSE, "", "2,3,? 4,12 -> ?", "2,3,4 4,12 -> 2,4"},
    {DENSE, "", "2,5,? 4,12 -> ?", "!12 is no multiple of 5"},
    {DENSE, "", "2 ? -> ?", "2 4,1 -> 2,4"},
    {DENSE, "", "- ? -> ?", "!has 0 dimensions"},
    {DENSE, "flag=1", "2,3,5 ? -> ?", "2,3,5 4,5 -> 2,3,4"},
    {DENSE, "flag=1", "? 4,7 -> 2,3,?", "2,3,7 4,7 -> 2,3,4"},
    {CONCAT, "", "2,3 2,4 -> ?", "2,3 2,4 -> 2,7"},
    {CONCAT, "", "2,3 2,? -> 2,9", "2,3 2,6 -> 2,9"},
    {CONCAT, "axis=-2", "2,3 5,3 1,3 -> ?", "2,3 5,3 1,3 -> 8,3"},
    {CONCAT, "", "2,3 2,? -> 2,2", "!should be"},
    {CONCAT, "", "2,3 3,3 -> ?", "!dimension 0 should be 2"},
    {DOT, "", "2,3 3,5,6 -> ?", "2,3 3,5,6 -> 2,5,6"},
    {DOT, "flag=1", "3,2 3,5 -> ?", "3,2 3,5 -> 2,5"},
    {DOT, "", "3 3 -> ?", "3 3 -> 1"},
    {DOT, "np", "3 3 -> ?", "3 3 -> -"},
    {DOT, "", "2,3 4,5 -> ?",
     "!rhs (4, 5): dimension 0 should be K = 3, K = 3 being dimension 1 of lhs (2, 3)"},
    /* broadcasts, functions */
    {"a:(A..) b:(B..) -> c:(A..&B..)", "", "3,1 4 -> ?", "3,1 4 -> 3,4"},
    {"a:(A..) b:(B..) -> c:(A..&B..)", "", "3,1 ?,4 -> 3,5", "!"},
    {"a:(A..) b:(B..) -> c:(A..&B..)", "", "3,2 4 -> ?", "!dimensions 2 and 4 do not broadcast"},
    {"a:(A..) b:(B..) -> c:(A..&B..)", "", "3,1 ?,? -> 3,5", "3,1 ?,5 -> 3,5"},
    {"a:(A..) -> c:(permute(A..))", "axes=(2,0,1)", "2,3,4 -> ?", "2,3,4 -> 4,2,3"},
    {"a:(A..) -> c:(permute(A..))", "axes=(2,0,1)", "? -> 4,2,3", "2,3,4 -> 4,2,3"},
    {"a:(A..) -> c:(permute(A..))", "", "2,3,4 -> ?", "2,3,4 -> 4,3,2"},
    {"a:(A..) -> c:(permute(A..))", "axes=(0,0)", "2,3 -> ?", "!axis 0 is there twice"},
    {"a:(A..) -> c:(permute(A..))", "axes=(0,2)", "2,3 -> ?", "!axis 2"},
    /* arithmetic */
    {"a:(N) -> b:(2*N+1)", "", "5 -> ?", "5 -> 11"},
    {"a:(N) -> b:(2*N+1)", "", "? -> 11", "5 -> 11"},
    {"a:(N) -> b:(2*N+1)", "", "? -> 12", "!11 is no multiple of 2"},
    {"a:(N) -> b:(2*N+1)", "", "? -> 0", "!"},
    {"a:(N) -> b:(N/n)", "", "8 -> ?", "8 -> 2"},
    {"a:(N) -> b:(N/n)", "", "? -> 3", "12 -> 3"},
    {"a:(N) -> b:(N/n)", "", "7 -> ?", "!7 is no multiple of 4"},
    {"a:(N) -> b:(N/k)", "", "7 -> ?", "!7 is no multiple of 0"},
    {"a:(N) -> b:(N-n)", "", "9 -> ?", "9 -> 5"},
    {"a:(N) -> b:(N-n)", "", "? -> 5", "9 -> 5"},
    {"a:(N) -> b:(N-n)", "", "3 -> ?", "!"},
    {"a:(N) -> b:(n-N)", "", "? -> 1", "3 -> 1"},
    {"a:(N,M) -> b:(N*M)", "", "0,? -> 0", "0,? -> 0"},
    {"a:(N,M) -> b:(N*M)", "", "4294967296,4294967296 -> ?", "!too large"},
    {"a:(N) -> b:(or(k,N))", "", "5 -> ?", "5 -> 5"},
    {"a:(N) -> b:(or(k,N))", "k=3", "5 -> ?", "5 -> 3"},
    {"a:(N) -> b:(or(size,N))", "", "5 -> ?", "5 -> 5"},
    {"a:(N) -> b:(or(size,N))", "size=2", "5 -> ?", "5 -> 2"},
    {"a:(N) -> b:(if(mode=b+c,N,2*N))", "", "5 -> ?", "5 -> 10"},
    {"a:(N) -> b:(if(mode=b+c,N,2*N))", "mode=c", "? -> 5", "5 -> 5"},
    {"a:(N) -> b:(if(size=None,N,1))", "", "5 -> ?", "5 -> 5"},
    {"a:(N) -> b:(if(size=None,N,1))", "size=0", "5 -> ?", "5 -> 1"},
    {"a:(N) -> b:(if(scale,N,2*N))", "scale=0.25", "5 -> ?", "5 -> 5"},
    {"a:(N) -> b:(if(scale,N,2*N))", "scale=-0", "5 -> ?", "5 -> 10"},
    {"a:(N) -> b:(Z) ; Z=N*n", "", "5 -> ?", "5 -> 20"},
    {"a:(N) -> b:(Z) ; Z=N*n", "", "? -> 20", "5 -> 20"},
    {"a:(D..) -> b:(W..) ; W..=permute(D..)", "", "2,3 -> ?", "2,3 -> 3,2"},
    {"a:(D..) -> b:(W..) ; W..=permute(D..)", "", "? -> 3,2", "2,3 -> 3,2"},
    {"a:(D..) -> b:(W..) ; W..=permute(D..)", "", "?,3 -> 3,2", "2,3 -> 3,2"},
    {"a:(D..) -> b:(W..) ; W..=permute(D..)", "", "2,3 -> 4,2", "!"},
    {"a:(D..) l:(N)/(N,1) -> b:(W..) ; W..=permute(D..)", "", "?,3 7,7 -> 3,2", "!"},
    {"a:(N,M,A..,B..) -> b:(N,M)", "", "5 -> ?", "!a (5,) has 1 dimensions"},
    {"a:(A) -> b:(I) ; A=B+1 ; B=C+1 ; C=D+1 ; D=E+1 ; E=F+1 ; F=G+1 ; G=H+1 ; H=I+1", "", "? -> 5",
     "13 -> 5"},
    {"a:(N) b:(K) -> c:(or(N,K))", "", "? 5 -> ?", "? 5 -> ?"},
    {"m?flag:(N) l:(N,K)/m/(N) -> b:(N)", "", "5,6,7 -> 3", "!"},
    {"a:(D..) -> b:(#D,#kernel)", "", "2,3 -> ?", "2,3 -> 6,9"},
    {"a:(D..) -> b:(?)", "", "2,3 -> ?", "2,3 -> ?"},
    {"a:(D..) -> b:(?)", "", "2,3 -> 5", "2,3 -> 5"},
    {"a:(D..) -> b:(1@axis,D..)", "axis=0", "2,3 -> ?", "2,3 -> 1,2,3"},
    /* forms that the shapes choose */
    {"a:(N,S..) l:(N,#S)/(N,S..)/a -> b:a", "", "2,3,4 2,12 -> ?", "2,3,4 2,12 -> 2,3,4"},
    {"a:(N,S..) l:(N,#S)/(N,S..)/a -> b:a", "", "2,3,4 2,3,4 -> ?", "2,3,4 2,3,4 -> 2,3,4"},
    {"a:(N,S..) l:(N,#S)/(N,S..)/a -> b:a", "", "2,3,4 ? -> ?", "2,3,4 2,12 -> 2,3,4"},
    {"a:(N,S..) l:(N,#S)/(N,S..)/a -> b:a", "", "2,3,4 5,12 -> ?", "!"},
    {"a:(N) m?flag:(N) s?mode=b:(N) -> b:(N)", "mode=b", "3 ? -> ?", "3 3 -> 3"},
    /* counts */
    {"a:(N) -> b*n:(N)", "n=3", "5 -> ? ? ?", "5 -> 5 5 5"},
    {"a:(N) -> b*n:(N)", "n=4294967297", "5 -> ?", "!n is 4294967297"},
    {"a:(N) -> b:(N) c*n:(N)", "n=-1", "5 -> ?", "!n is -1"},
    {"a:(N) -> b:(N) c*n:(N)", "n=4097", "5 -> ?", "!n is 4097, 0 to 4096 are allowed"},
    {MIXED, "", "3 3 -> ?", "3 3 -> 3"},
    {MIXED, "flag=1", "2 3 3 -> ?", "2 3 3 -> 3"},
    {MIXED, "flag=1", "2 -> 4", "2 -> 4"},
    {MIXED, "flag=1", "-> ?", "!0 inputs, but at least 1 are needed"},
    {"[flag]a:(N) -> b:(N) | a:(N,M) -> b:(M)", "flag=1", "5 -> ?", "5 -> 5"},
    {SUMS, "flag=1", "2,3 2,4 -> ?", "2,3 2,4 -> 2,7"},
    {SUMS, "flag=1", "2,3 2,? -> 2,9", "2,3 2,6 -> 2,9"},
    {SUMS, "", "2,3 4,3 -> ?", "2,3 4,3 -> 6,3"},
    /* attributes below 0, sizes over 2^63 */
    {"a:(N) -> b:(N*k)", "k=-1", "5 -> ?", "!k is -1, and no dimension is below 0"},
    {"a:(N) -> b:(N+k)", "k=-2", "? -> 5", "!k is -2"},
    {"a:(N) -> b:(or(k,N))", "k=-1", "5 -> ?", "5 -> 5"},
    {"a:(N) -> b:(or(k,N))", "k=-1", "? -> 5", "5 -> 5"},
    {"a:(N) -> b:(N-n)", "", "3 -> ?", "!N-n is below 0: 3 - 4"},
    {"a:(N) -> b:(kernel..)", "kernel=(2,-1)", "5 -> ?", "!kernel is -1"},
    {"a:(N) -> b:(#kernel)", "kernel=(2,-1)", "5 -> ?", "!kernel is -1"},
    {"a:(N) -> b:(#kernel)", "kernel=(4294967296,4294967296)", "5 -> ?", "!a dimension is too large"},
    {"a:(D..) -> b:(#D)", "", "4294967296,4294967296 -> ?", "!a dimension is too large"},
    {"a:(D..) -> b:(#D)", "", "4294967296,4294967296,? -> 5", "!a dimension is too large"},
    {CONCAT, "axis=0", "9223372036854775807 1 -> ?", "!a dimension is too large"},
    {CONCAT, "axis=0", "9223372036854775807 9223372036854775807 9223372036854775807 ? -> 5",
     "!a dimension is too large"},
    {CONV, "pad=(9223372036854775807,0)", "2,3,8,8 ? ? -> ?", "!pad has the item 9223372036854775807"},
    {CONV, "stride=(0,1)", "2,3,8,8 ? ? -> ?", "!stride has the item 0"},
    {"a:(S..) b:(SX..) -> c:(SX..)", "", "2 3 -> 4", "!should be 3, by SX.. of b (3,)"},
};

static void shapes_follow(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof shape_cases / sizeof *shape_cases; i++) {
        char text[512] = "";
        bench b = {0};
        tn_status st;

        bench_open(&b, shape_cases[i].rule, NULL, shape_cases[i].attrs);
        st = infer(&b, b.def, shape_cases[i].given,
                   strcmp(shape_cases[i].attrs, "np") == 0 ? TN_INFER_NP_SHAPE : 0, text, sizeof text);
        if (shape_cases[i].wanted[0] == '!' ? !st || !strstr(tni_error_message(), shape_cases[i].wanted + 1)
                                            : st || strcmp(text, shape_cases[i].wanted) != 0) {
            print_error("case %zu, %s with %s: %s %s, not %s\n", i, shape_cases[i].rule, shape_cases[i].given,
                        text, st ? tni_error_message() : "", shape_cases[i].wanted);
            wrong++;
        }
        bench_close(&b);
    }
    assert_int_equal(wrong, 0);
}

/* Whether each shape that was found is the wanted one as far as it is known. */
static bool part_of(const char *found, const char *wanted)
{
    char a[512], b[512], *x = a, *y = b, *one, *other;

    snprintf(a, sizeof a, "%s", found);
    snprintf(b, sizeof b, "%s", wanted);
    while ((one = strsep(&x, " ")) && (other = strsep(&y, " "))) {
        const tn_shape s = shape_of(one), t = shape_of(other);

        if (strcmp(one, "->") == 0 || s.ndim < 0)
            continue;
        if (s.ndim != t.ndim)
            return false;
        for (int32_t k = 0; k < s.ndim; k++)
            if (s.dim[k] >= 0 && s.dim[k] != t.dim[k])
                return false;
    }
    return true;
}

/* Whatever is left out of a consistent set of shapes, inference finds the same or leaves it open, and never
 * says that the rest does not fit. */
static void any_subset_fits(void **state)
{
    static const struct {
        const char *rule, *shapes[4];
        uint32_t in;
    } whole[] = {
        {CONV, {"2,3,8,8", "4,3,3,3", "4", "2,4,6,6"}, 3},
        {DENSE, {"2,3,4", "4,12", "2,4"}, 2},
        {CONCAT, {"2,3", "2,4", "2,7"}, 2},
        {DOT, {"2,3", "3,5", "2,5"}, 2},
        {"a:(A..) b:(B..) -> c:(A..&B..)", {"3,1", "1,4", "3,4"}, 2},
        {"a:(N,S..) l:(N,#S)/(N,S..)/a -> b:a", {"2,3,4", "2,12", "2,3,4"}, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        uint32_t count = 0;

        while (count < 4 && whole[i].shapes[count])
            count++;
        for (uint32_t known = 0; known < 1u << count; known++) {
            char given[256] = "", text[512], full[256] = "";
            bench b = {0};

            for (uint32_t k = 0; k < count; k++) {
                snprintf(given + strlen(given), sizeof given - strlen(given), "%s%s%s", k ? " " : "",
                         k == whole[i].in ? "-> " : "", known >> k & 1u ? whole[i].shapes[k] : "?");
                snprintf(full + strlen(full), sizeof full - strlen(full), "%s%s%s", k ? " " : "",
                         k == whole[i].in ? "-> " : "", whole[i].shapes[k]);
            }
            bench_open(&b, whole[i].rule, NULL, "");
            if (infer(&b, b.def, given, 0, text, sizeof text))
                fail_msg("%s with %s: %s", whole[i].rule, given, tni_error_message());
            if (!part_of(text, full))
                fail_msg("%s with %s gives %s", whole[i].rule, given, text);
            bench_close(&b);
        }
    }
}

/* ---- texts that are no rules ------------------------------------------------------------------ */

static const char *const bad_rules[] = {
    "",
    " ",
    "->",
    "a:(N)",
    "a:(N) ->",
    "-> a",
    "a (N) -> b:(N)",
    "a:(N -> b:(N)",
    "a:(N)) -> b:(N)",
    "a:(n) -> b:(nothing)",
    "a:(N,) -> b:(N)",
    "a:(,N) -> b:(N)",
    "a:(N) -> b:a2",
    "a:b -> b:(N)",
    "a:(N..) -> b:(N..",
    "a:(N)^nothing -> b:(N)",
    "a:(N)?nothing -> b:(N)",
    "a:(N@nothing) -> b:(N)",
    "a:(N..@axis) -> b:(N)",
    "a:(scale) -> b:(N)",
    "a:(layout) -> b:(N)",
    "a:(n..) -> b:(N)",
    "a:(#n) -> b:(N)",
    "a:(+N) -> b:(N)",
    "a:(N'+1) -> b:(N)",
    "a:(N*+D') -> b:(N)",
    "a*:(N) b:(N) -> c:(N)",
    "a*n:(N) -> b:(N)",
    "a:(N) -> b*:(N)",
    "a~:(N) -> b:(N)",
    "[mode=d] a:(N) -> b:(N)",
    "[n=5x] a:(N) -> b:(N)",
    "[n=x] a:(N) -> b:(N)",
    "[mode=None] a:(N) -> b:(N)",
    "[flag a:(N) -> b:(N)",
    "a:(N) -> b:(N) | a:(N) -> c:(N)",
    "a:(N) -> b:(N) | a:(N) d:(N) -> b:(N)",
    "a:(N) -> b:(N) ; Z",
    "a:(N) -> b:(N) ; Z=",
    "a:(N) -> b:(N) ; z=N",
    "a:(N) -> b:(N) x",
    "a:(or(N)) -> b:(N)",
    "a:(if(flag)) -> b:(N)",
    "a:(window(N)) -> b:(N)",
    "a:(window(S..,S..)) -> b:(N)",
    "a:(ABCDE) -> b:(N)",
    "a:(2N) -> b:(N)",
    "a:(N:) -> b:(N)",
    "a:(2*N:word) -> b:(N)",
    "a:(N) b:(N)-> c:(N)",
    "[flag] a:(N) b?flag:(N) -> c:(N) | a:(N) b:(N) -> c:(N)",
    "[flag] a:(N) -> b:(N) c:(N) | a:(N) -> b:(N) c~:(N)",
    /* attributes of another type */
    "a:(A..) -> b:(reduce(A..))",
    "a:(N@scale) -> b:(N)",
    "a:(N@mode) -> b:(N)",
    "a:(N@kernel) -> b:(N)",
    "a:(kernel) -> b:(N)",
    "a:(or(kernel,N)) -> b:(N)",
    "a:(live) -> b:(N)",
    "a:(parts..) -> b:(N)",
    "a:(N) -> b*scale:(N)",
    "a:(N) -> b*size:(N)",
    "a:(N) -> b*kernel:(N)",
    "[mode] a:(N) -> b:(N)",
    "[few=7] a:(N) -> b:(N)",
    "[live] a:(N) -> b:(N)",
    "a:(N,C,S..)^n -> b:(N)",
    "a:(N,C,S..)^mode -> b:(N)",
    "a:(N,C,S..)^odd -> b:(N)",
    "a:(N,C)^layout -> b:(N)",
    "a:(S..,N,C)^layout -> b:(N)",
    "a:(N,C@axis,S..)^layout -> b:(N)",
    "a*:(N,D',S..)^layout -> b:(+D')",
    /* sums */
    "a:(D') -> b:(+D')",
    "a*:(D',D') -> b:(+D')",
    "a*:(D')/(D',N) -> b:(+D')",
    "a*:(D') -> b:(+D') ; Z=D'",
    "[flag] a*:(D') -> b:(+D') | a*:(D) -> b:(+D')",
    "[flag] a*:(D') -> b:(Z) | a*:(D) -> b:(Z) ; Z=+D'",
};

static void bad_rules_are_refused(void **state)
{
    char deep[4096] = "a:(", many[8192] = "a:(";
    tni_opset *ops;
    size_t count;

    (void)state;
    for (int k = 0; k < 1000; k++)
        strcat(deep, "(");
    for (int k = 0; k < 1000; k++)
        strcat(many, "N+1,");
    strcat(deep, "N) -> b:(N)");
    strcat(many, "N) -> b:(N)");
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    count = tni_opset_count(ops);
    for (size_t i = 0; i < sizeof bad_rules / sizeof *bad_rules + 2; i++) {
        tn_op op = {.struct_size = sizeof op, .version = 1, .name = "rule", .attrs = rule_attrs};

        op.shapes = i < sizeof bad_rules / sizeof *bad_rules    ? bad_rules[i]
                    : i == sizeof bad_rules / sizeof *bad_rules ? deep
                                                                : many;
        if (tni_opset_add(ops, &op, NULL) != TN_E_ARG)
            fail_msg("\"%.80s\" was taken", op.shapes);
        assert_non_null(strstr(tni_error_message(), "rule"));
    }
    assert_int_equal(tni_opset_count(ops), count);
    tni_opset_destroy(ops);
}

/* A rule is read against the table of attributes: what that lacks is refused before. */
static void tables_come_first(void **state)
{
    static const tn_attr_def bad[][2] = {
        {TN_ATTR_CHOICE("layout", "NCHW", NULL, ""), TN_ATTR_END},
        {{"layout", 99, 0, "NCHW", "NCHW", "", 1, 0, 1, 0}, TN_ATTR_END},
        {{"layout\n", TN_ATTR_T_CHOICE, 0, "NCHW", "NCHW", "", 1, 0, 1, 0}, TN_ATTR_END},
        {TN_ATTR_CHOICE("layout", "NCHW", "|", ""), TN_ATTR_END},
    };
    char longest[300];
    tni_opset *ops;
    tn_op op = {.struct_size = sizeof op,
                .version = 1,
                .name = "rule",
                .shapes = "a:(N,C,S..)^layout -> b:a",
                .gradients = "once: dy -> a"};

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        op.attrs = bad[i];
        assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG);
        assert_null(strchr(tni_error_message(), '\n'));
    }
    op.attrs = NULL;
    op.shapes = "a:(N,\n\x1b[31mC) -> b:a"; /* told where, on one line, without colours */
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG);
    assert_non_null(strstr(tni_error_message(), "operator rule"));
    assert_non_null(strstr(tni_error_message(), "at \"..[31mC) -> b:a\", character 6"));
    op.shapes = "a:(N) -> b:a";
    op.name = longest; /* so long that its backward has no room for its own */
    memset(longest, 'a', sizeof longest);
    longest[250] = '\0';
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG);
    op.gradients = NULL;
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_OK);
    op.name = "smaller"; /* a definition of an earlier day: what lies behind its end is not read */
    op.gradients = "once: dy -> a";
    op.struct_size = TN_END(tn_op, shapes);
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_OK);
    op.name = "smallest";
    op.struct_size = TN_END(tn_op, gradient);
    assert_int_equal(tni_opset_add(ops, &op, NULL), TN_E_ARG); /* no shapes */
    tni_opset_destroy(ops);
}

/* What a function over ranges reads is an attribute of its type. */
static void function_attributes(void **state)
{
    static const tn_attr_def none[] = {TN_ATTR_END}, number[] = {TN_ATTR_INT("kernel", "3", ""), TN_ATTR_END},
                             text[] = {TN_ATTR_TUPLE("kernel", "(3,)", ""), TN_ATTR_TEXT("pad", "None", ""),
                                       TN_ATTR_END},
                             good[] = {TN_ATTR_TUPLE("kernel", "(3,)", ""), TN_ATTR_END};
    static const tn_attr_def *const tables[] = {none, number, text, good};

    (void)state;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        const tn_op op = {.struct_size = sizeof op,
                          .version = 1,
                          .name = "rule",
                          .attrs = tables[k],
                          .shapes = "a:(S..) -> b:(window(S..))"};
        tni_ruled_op *made = NULL;

        assert_int_equal(tni_ruled_op_create(&op, true, &made), tables[k] == good ? TN_OK : TN_E_ARG);
        tni_ruled_op_destroy(made);
    }
}

/* An input that may be missing stands before a variadic one. */
static void names_of_inputs(void **state)
{
    static const char *const wanted[2][2] = {{"b0", "b1"}, {"a", "b0"}};

    (void)state;
    for (size_t flag = 0; flag < 2; flag++) {
        bench b = {0};
        char name[16];

        bench_open(&b, "[n]" MIXED " | " MIXED, NULL, flag ? "flag=1" : "");
        assert_string_equal(b.def->op->inputs[0], "a");
        assert_string_equal(b.def->op->inputs[1], "b*");
        assert_int_equal(tni_op_args(b.def, b.attrs, 2, &b.args), TN_OK);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(tni_op_input_name(b.def, &b.args, k, name, sizeof name), TN_OK);
            assert_string_equal(name, wanted[flag][k]);
        }
        bench_close(&b);
    }
}

static void mangled_rules(void **state)
{
    bench b = {0};

    (void)state;
    bench_open(&b, "a:(N) -> b:(N)", NULL, "");
    mangle(&b,
           "data:(N,C:channels,S..)^layout arg?flag:(n,#S)/data w*:(A..,D'@axis,B..) -> "
           "out:(or(k,N),+D',window(S..)) ; Z=if(mode=b,n,2*N)/2",
           NULL);
    bench_close(&b);
}

/* Each allocation fails once: nothing is left behind, and the backward operator is there or not with the
 * forward one. */
static void allocation_failures(void **state)
{
    tn_op op = {.struct_size = sizeof op,
                .version = 1,
                .name = "rule",
                .attrs = rule_attrs,
                .shapes = "a:(N) m?flag:(N) -> b:(N)",
                .gradients = "once: dy a -> a m"};
    bool failed = true;

    (void)state;
    for (uint64_t nth = 1; failed; nth++) {
        const tni_opdef *def;
        tni_opset *ops;
        tn_status st;

        assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
        tni_mem_fail_at(nth, false, true);
        st = tni_opset_add(ops, &op, NULL);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, true);
        assert_int_equal(st, failed ? TN_E_NOMEM : TN_OK);
        assert_int_equal(tni_opset_find(ops, "rule", &def), failed ? TN_E_KEY : TN_OK);
        assert_int_equal(tni_opset_find(ops, "_backward_rule", &def), failed ? TN_E_KEY : TN_OK);
        tni_opset_destroy(ops);
    }
}

/* The rules of all operators of the core can be read. */
static void core_rules(void **state)
{
    tni_opset *ops;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    for (size_t i = 0; i < tni_opset_count(ops); i++)
        if (tni_ruled_op_parse(tni_opset_at(ops, i)->op))
            fail_msg("%s", tni_error_message());
    tni_opset_destroy(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow),         cmocka_unit_test(any_subset_fits),
        cmocka_unit_test(bad_rules_are_refused), cmocka_unit_test(mangled_rules),
        cmocka_unit_test(allocation_failures),   cmocka_unit_test(core_rules),
        cmocka_unit_test(function_attributes),   cmocka_unit_test(names_of_inputs),
        cmocka_unit_test(tables_come_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
