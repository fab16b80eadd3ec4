/* Sizes of teams: see ../common/team.inc. */
#include "../common/team.inc"
