/* The smallest program: which Tenon am I linked with? */
#include <stdio.h>

#include <tenon/base.h>

int main(void)
{
    return printf("%s\n", tn_version()) < 0;
}
