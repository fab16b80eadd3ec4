/* clang-format off */
/*
 * Shape rules (`tn_op.shapes`): which arguments an operator has and how their shapes hang together, as one
 * line of text, in the place of `inputs`, `outputs`, `visible`, `args` and `shape`. Solved in both
 * directions: what is known of one shape fixes the rule's symbols, and these give the other shapes.
 *
 *     "data:(N,C:channels,S..)^layout weight:(n,C/num_group,kernel..)^layout bias?!no_bias:(n)"
 *     " -> output:(N,n,window(S..))^layout"
 *
 *     rule  := case { "|" case } { ";" SYM "=" dim | ";" SYM "..=" range }
 *     case  := [ "[" cond "]" ] { arg } "->" { arg }
 *     arg   := name [ "*" [attr] ] [ "?" cond ] [ "~" [cond] ] ":" form { "/" form }
 *     form  := ( argument | "(" [ item { "," item } ] ")" [ "^" attr ] ) [ "?" cond ]
 *     item  := dim [ ":" word ] [ "@" attr ] | range
 *     range := SYM ".." | attr ".." | function "(" range ")" | range "&" range
 *     dim   := term { ("+" | "-") term }
 *     term  := fact { ("*" | "/") fact }
 *     fact  := number | SYM | SYM "'" | "+" SYM "'" | "#" SYM | "#" attr | attr | "?" | "(" dim ")"
 *              | "or(" dim "," dim ")" | "if(" cond "," dim "," dim ")"
 *     cond  := ["!"] attr [ "=" value { "+" value } ] { "&" cond }
 *
 * Blanks separate arguments. SYM: capitals, a dimension, or several (`SYM..`); a word tells messages what
 * it is. The first case whose condition holds is taken, the last one else; what stands before each
 * `:` is the same in all. `name*`: any number, the last input,
 * counted by the caller; an output counted by `attr`. `?cond`: there only if it holds. `~`: users do not
 * see the output, or only if its condition holds. Of several forms the first one whose condition holds, or
 * that fits. `@attr`: stands at that axis. `^attr`: a choice such as NHWC orders three items, of which the
 * first two are dimensions. `&`: NumPy's broadcast. `/` goes without remainder. `S'` is each copy's own,
 * standing once in a case, `+S'` their sum. `#S`: product of a range, `#attr`: of a tuple. `?`: known after
 * run. `or(a,b)`: a if above 0, else b. A condition without value: neither 0 nor None. An attribute that is
 * None counts as 0, one below 0 is an error. Attributes are integers, tuples or choices as their places
 * need, and structural. Functions: shape_rule_ranges.c. Without np_shape a shape without dimensions is (1).
 *
 * Type rules (`tn_op.types`), in the place of `dtype`: which data types arguments have. All of them have one,
 * `T`, but for those that a clause speaks of.
 *
 *     rule   := clause { ";" clause }
 *     clause := [ "[" cond "]" ] target { "," target } ":" ( type [ ":" class ] | class )
 *     target := argument | VAR
 *     type   := VAR [ "(" class ")" ] | argument | a type such as bool, i32, f64 | "stat(" type ")"
 *              | "floatof(" type ")" | "sumof(" type ")"
 *              | "promote(" type "," type ")" | "scalar(" type ")" | "or(" type ")"
 *              | "attr(" attr [ "," type ] ")"
 *     class  := "float" | "integer" | "number" | "small" | "index"
 *
 *     "T:float; gamma,beta,mean,var:stat(T)"    "T:promote(lhs,rhs); output:bool"    "output:attr(dtype,T)"
 *
 * VAR: one capital; what has it has one type. stat: f64 of f64, f32 of other types. floatof: f32 of types
 * that are not floating point. sumof: i64 of bool, others are themselves. promote: where two meet, see
 * type_rule.c; its arguments have types of their own. scalar: beside a number, which is whole if
 * the attribute is_int says so. or: only if nothing else is known. attr: what the attribute says; for None
 * the second type, without one None is an error. The last
 * clause about an argument whose condition holds counts; a class limits it besides.
 *
 * Gradient rules (`tn_op.gradients`), in the place of `gradient`:
 *
 *     rule   := class ":" row { "|" row } [ ";" second { "|" second } ]
 *     row    := [ "[" cond "]" ] ( { role } "->" { input [ "*" ] [ "=0" ] } | steps | "0" )
 *     role   := [ "~" ] argument [ "*" ]
 *     second := [ "[" cond "]" ] ( steps | value )
 *
 *     "bilinear: dy data weight -> data weight bias"    "linear: dy ~data -> data"
 *     "pointwise: dy output -> data ; 1-output*2"       "composed: lhs = dy*rhs ; rhs = dy*lhs"
 *
 * A row with an arrow makes the operator `_backward_NAME` with the same attributes, whose kernels compute
 * the gradient. Left of the arrow stand its inputs: `dy` (`dy1`: of output 1), inputs and outputs by name; of
 * one with `~` only the shape is read. A row without `dy` is a loss layer's (TN_OP_IGNORE_HEAD). Right of it:
 * inputs that get a gradient, or zeros. An argument that is not there is left out, all copies of a variadic
 * one stand last. The class says the second derivative:
 *
 *     linear     in the inputs that get a gradient: one, or all; dy comes first, all others are read
 *     bilinear   a product of the first two inputs, which the row reads behind `dy`; all inputs stand right
 *                of the arrow, a third one is there `?!no_bias`
 *     pointwise  `dy x -> data`: dy times a function of x, whose derivative stands behind ";" (0: it is none)
 *     own        the steps behind ";", without them the function `second`
 *     once       there is none
 *     composed   all rows are steps, so there is no backward operator
 *     broadcast  the same, of operands that stretch; numpy: and differ in type
 *
 * Steps build nodes out of operators: gradient_steps.c. A row "0" gives zeros to all inputs.
 */
/* clang-format on */
#ifndef TN_OP_SHAPE_RULE_H
#define TN_OP_SHAPE_RULE_H

#include "op/infer_help.h"

/* Sizes of a rule's tables. RNN, the longest of MXNet's operators, takes about 70 expressions. */
#define RULE_SYMBOLS_MAX 24
#define RULE_EXPRS_MAX 96
#define RULE_RANGES_MAX 24
#define RULE_ITEMS_MAX 64
#define RULE_ALTS_MAX 32
#define RULE_ARGS_MAX 16 /* of one case */
#define RULE_CASES_MAX 4
#define RULE_CONDS_MAX 24
#define RULE_CHOICES_MAX 6 /* values in one condition: attr=a+b+c */
#define RULE_DEFS_MAX 8
#define RULE_CALL_ATTRS_MAX 6
#define RULE_GRADIENTS_MAX 4
#define RULE_SECONDS_MAX 6
#define RULE_OPTIONAL_MAX 4 /* inputs that may be missing: there is a list of names for each combination */
#define RULE_NAME_MAX 4     /* bytes of a symbol's name */
#define RULE_TYPES_MAX 24
#define RULE_CLAUSES_MAX 12
#define RULE_VARS 26 /* T and other capitals */

#define RULE_NONE UINT8_MAX /* no condition, no expression */

typedef enum expr_kind {
    EXPR_NUMBER,
    EXPR_ATTR,         /* a number: int, bool, choice; None counts as 0 */
    EXPR_ATTR_PRODUCT, /* of a tuple's items */
    EXPR_SYMBOL,
    EXPR_COPY,    /* S': an own value for each copy of a variadic argument */
    EXPR_SUM,     /* +S': over the copies */
    EXPR_PRODUCT, /* #S: of a range */
    EXPR_OPEN,    /* ?: known once the operator ran */
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV, /* must go without remainder */
    EXPR_OR,  /* or(a, b): a if above 0, else b */
    EXPR_IF,  /* if(cond, a, b) */
} expr_kind;

typedef struct rule_expr {
    uint8_t kind, symbol, a, b;
    uint8_t cond, reserved;
    int16_t attr;
    int64_t number;
} rule_expr;

/* Some dimensions in a row: what a range symbol or a function of one stands for. n -1: not known how many. */
typedef struct rule_dims {
    int32_t n;
    int64_t dim[TN_NDIM_MAX]; /* -1: not known */
} rule_dims;

/* One function over ranges while it runs. Attributes are those that its row in the table names. */
typedef struct rule_call {
    tn_infer *i;
    const int16_t *attr; /* index in the definition, -1: the operator has no such attribute */
} rule_call;

#define RULE_TYPE(t) (1u << TN_ATTR_T_##t)

typedef struct rule_need { /* an attribute that a function reads */
    const char *name;
    uint32_t types; /* RULE_TYPE bits */
    bool needed;    /* the operator must have it */
} rule_need;

typedef struct rule_function {
    const char *name;
    rule_need attrs[RULE_CALL_ATTRS_MAX];
    tn_status (*check)(const rule_call *c); /* of the attributes alone; may be NULL */
    int32_t (*length)(
        const rule_call *c); /* dimensions that it takes, by attributes that passed `check`; or NULL */
    /* `in` to `out`, `in->n` being known. Unknown dimensions of `in` give unknown ones. */
    tn_status (*forward)(const rule_call *c, const rule_dims *in, rule_dims *out);
    /* The same from `out`, as far as it can be told; NULL: never. */
    tn_status (*backward)(const rule_call *c, const rule_dims *out, rule_dims *in);
} rule_function;

const rule_function *tni_rule_function(const char *name, size_t length); /* NULL: there is none */

typedef enum range_kind { RANGE_SYMBOL, RANGE_ATTR, RANGE_BROADCAST, RANGE_CALL } range_kind;

typedef struct rule_range {
    uint8_t kind, symbol, a, b; /* a, b: ranges */
    int16_t attr;
    int16_t attrs[RULE_CALL_ATTRS_MAX];
    const rule_function *function;
} rule_range;

typedef struct rule_item {
    uint8_t range; /* RULE_NONE: one dimension, `expr` */
    uint8_t expr;
    int16_t at;           /* attribute that says at which axis it stands, -1 none */
    uint16_t text, bytes; /* where it stands in the rule, for messages */
} rule_item;

typedef struct rule_alt {
    uint8_t cond;
    uint8_t same_as; /* argument whose shape it has; RULE_NONE: the items */
    uint8_t item, item_count;
    int16_t layout; /* attribute whose text orders the items, -1 none */
    uint16_t text, bytes;
} rule_alt;

typedef struct rule_arg {
    uint8_t alt, alt_count;
    uint8_t cond;         /* it is there only if this holds */
    uint8_t visible_cond; /* of an output: users see it only if this holds */
    bool variadic, hidden;
    int16_t count_attr; /* how many copies of a variadic output */
    uint8_t bytes;
    const char *name; /* `bytes` of it, in the rule or in the definition */
} rule_arg;

typedef struct rule_cond { /* a chain by `next`, all of which must hold */
    int16_t attr;
    bool negated, is_none, truth; /* truth: attr without "=": neither 0 nor None */
    uint8_t count, next;
    int64_t value[RULE_CHOICES_MAX];
} rule_cond;

typedef struct rule_case {
    uint8_t cond;
    rule_arg arg[RULE_ARGS_MAX]; /* inputs, then outputs */
} rule_case;

typedef struct rule_def { /* symbol = expr or range */
    uint8_t symbol, expr, range;
    uint16_t text, bytes;
} rule_def;

typedef struct rule_copy { /* where S' stands; RULE_NONE: nowhere */
    uint8_t arg, item;
} rule_copy;

typedef struct rule_symbol {
    char name[RULE_NAME_MAX + 1];
    bool range;
    rule_copy copy[RULE_CASES_MAX]; /* in each case */
    uint16_t word, word_bytes;      /* how messages call it: the text behind "SYM:" */
} rule_symbol;

typedef enum type_kind {
    TYPE_VAR,   /* symbol a */
    TYPE_FIXED, /* dtype a */
    TYPE_ARG,   /* of argument a */
    TYPE_ATTR,  /* attr; None: type a */
    TYPE_OR,    /* type a where nothing else is known */
    TYPE_STAT,
    TYPE_FLOATOF,
    TYPE_SUMOF,
    TYPE_PROMOTE, /* types a and b */
    TYPE_SCALAR,  /* type a; attr: is_int */
} type_kind;

typedef struct rule_type {
    uint8_t kind, a, b;
    int16_t attr;
} rule_type;

typedef struct rule_clause {
    uint8_t cond, type, limit; /* RULE_NONE: says nothing of it; limit: a row of type_rule.c's classes */
    uint8_t bytes;
    const char *text;    /* the right side, for messages */
    uint32_t args, vars; /* whom it speaks of: arguments as written, inputs first, and capitals, by bit */
} rule_clause;

typedef struct rule_role { /* what an argument of the backward operator is to the forward one */
    bool head;             /* the gradient of that output */
    bool zero;             /* of an input that gets zeros */
    bool unread;           /* only its shape is read */
    uint8_t arg;           /* as written: inputs, then outputs */
} rule_role;

typedef struct rule_gradient { /* one row of the gradient rule */
    uint8_t cond;
    uint8_t in_count, out_count;
    bool zero;                                       /* all inputs get zeros */
    rule_role in[RULE_ARGS_MAX], out[RULE_ARGS_MAX]; /* out: inputs that get a gradient */
    const char *steps;                               /* instead of them; NULL: none */
} rule_gradient;

typedef struct rule_second { /* steps of the second derivative, of `pointwise` a factor or "0" */
    uint8_t cond;
    bool zero;
    const char *text;
} rule_second;

typedef enum rule_class {
    CLASS_NONE,
    CLASS_LINEAR,
    CLASS_BILINEAR,
    CLASS_POINTWISE,
    CLASS_OWN,
    CLASS_ONCE,
    CLASS_COMPOSED,
    CLASS_BROADCAST,
    CLASS_NUMPY
} rule_class;

typedef struct tni_shape_rule {
    const tn_op *op;
    const char *text;
    uint8_t in_count, out_count; /* arguments as written, a variadic one counting once */
    uint8_t case_count, symbol_count, expr_count, range_count, item_count, alt_count, cond_count, def_count;
    rule_symbol symbols[RULE_SYMBOLS_MAX];
    rule_expr exprs[RULE_EXPRS_MAX];
    rule_range ranges[RULE_RANGES_MAX];
    rule_item items[RULE_ITEMS_MAX];
    rule_alt alts[RULE_ALTS_MAX];
    rule_cond conds[RULE_CONDS_MAX];
    rule_case cases[RULE_CASES_MAX];
    rule_def defs[RULE_DEFS_MAX];
    uint8_t optional_count, optional[RULE_OPTIONAL_MAX]; /* inputs that may be missing */
    const char *
        *names; /* of the inputs that are there, a list of in_count + 1 for each combination of optional */
    uint8_t gradient_class, gradient_count; /* CLASS_NONE: no gradient rule */
    rule_gradient gradients[RULE_GRADIENTS_MAX];
    uint8_t second_count;
    rule_second seconds[RULE_SECONDS_MAX];
    uint8_t type_count, clause_count;
    rule_type types[RULE_TYPES_MAX];
    rule_clause clauses[RULE_CLAUSES_MAX];
    uint32_t untyped; /* arguments of promote without a clause: they have types of their own */
} tni_shape_rule;

/* Parses the rules of a definition, whose attribute table was checked; without a shape rule its lists name
 * the arguments. With `heads` only what the names of arguments need: the heads of the first case's arguments,
 * the class and the first row of the gradient rule. TN_E_ARG: names the place in the text. */
tn_status tni_shape_rule_parse(const tn_op *op, bool heads, tni_shape_rule **out);
void tni_shape_rule_destroy(tni_shape_rule *r);
/* NULL-ended lists of `count` + 1 pointers, one for each combination of those names that may be missing: bit
 * k of a list's number says that optional[k], which ascend, is there. One block; NULL: out of memory. */
const char **tni_rule_name_lists(const char *const *names, uint32_t count, const uint8_t *optional,
                                 uint32_t optional_count);
bool tni_rule_holds(const tni_shape_rule *r, uint8_t cond, const tn_value *attrs); /* RULE_NONE: true */
/* How many inputs, outputs and visible outputs there are. `in_count` is what the caller has of a variadic
 * operator, and stays. */
tn_status tni_shape_rule_args(const tni_shape_rule *r, tn_infer *i);
/* One inference: fills in what follows. TN_E_SHAPE: two facts contradict each other; TN_E_ATTR: an attribute
 * that no shape goes with. */
tn_status tni_shape_rule_infer(const tni_shape_rule *r, tn_infer *i, tn_shape *const *in,
                               tn_shape *const *out);
/* Whether argument `a` as written (inputs, then outputs) is there with these attributes. */
bool tni_shape_rule_present(const tni_shape_rule *r, uint8_t a, const tn_value *attrs);

/* Which slots each argument has, inputs before outputs: the first one, and how many. TN_E_ARG: other counts
 * than the rule has. */
tn_status tni_rule_slots(const tni_shape_rule *r, tn_infer *i, uint32_t *first, uint32_t *copies);
/* One inference of data types. TN_E_DTYPE: two facts contradict each other; TN_E_ATTR: an attribute does. */
tn_status tni_type_rule_infer(const tni_shape_rule *r, tn_infer *i);
/* The first row with an arrow; NULL: there is none. */
const rule_gradient *tni_gradient_row(const tni_shape_rule *r);
/* gradient_steps.c: what steps make. `row`: of the backward operator whose gradient `g` is; NULL: `g` is of
 * the operator itself. */
tn_status tni_gradient_steps(const tni_shape_rule *r, const rule_gradient *row, const char *text, tn_grad *g);
/* What arrives times its first input times a factor. */
tn_status tni_gradient_factor(const tni_shape_rule *r, const rule_gradient *row, const char *text, tn_grad *g,
                              tn_edge *out);

/* ---- ruled.c: definitions whose functions follow from rules -------------------------------------------- */

typedef struct tni_ruled_op tni_ruled_op;
bool tni_op_is_ruled(const tn_op *op); /* it has rules */
/* The definition with names and functions filled in; it lives until destroyed, `given` at least as long. With
 * `at_once` the rules are parsed now, else at first use. TN_E_ARG: the definition says one thing twice, or a
 * rule cannot be read. */
tn_status tni_ruled_op_create(const tn_op *given, bool at_once, tni_ruled_op **out);
/* The backward operator of a definition with a gradient rule; NULL: it has none.
 * The forward must outlive it. */
tn_status tni_ruled_op_backward(const tni_ruled_op *forward, tni_ruled_op **out);
/* The same of a definition that computes another one, whose rules are of types and steps. */
tn_status tni_ruled_op_derived(const tn_op *given, bool at_once, tni_ruled_op **out);
void tni_ruled_op_destroy(tni_ruled_op *r);
const tn_op *tni_ruled_op_definition(const tni_ruled_op *r);
tn_status tni_ruled_op_parse(const tn_op *op); /* the rules of such a definition now, if it is one */

#endif
