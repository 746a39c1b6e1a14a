"""The grammar of selectors, for lark. In a module, so that programs which are packed into one file have it."""

from __future__ import annotations

from typing import Final

__all__ = ["GRAMMAR"]

GRAMMAR: Final = r"""
// JMS message selectors: the conditional expressions of SQL-92, over headers. Precedence grows from top to bottom.

?start: condition

?condition: conjunction
    | condition "OR"i conjunction                                   -> disjunction_of
?conjunction: negation
    | conjunction "AND"i negation                                   -> conjunction_of
?negation: predicate
    | "NOT"i negation                                               -> negation_of

?predicate: sum
    | sum COMPARISON sum                                            -> comparison
    | sum "BETWEEN"i sum "AND"i sum                                 -> between
    | sum "NOT"i "BETWEEN"i sum "AND"i sum                          -> not_between
    | sum "IN"i "(" literals ")"                                    -> among
    | sum "NOT"i "IN"i "(" literals ")"                             -> not_among
    | sum "LIKE"i STRING [_ESCAPE STRING]                           -> like
    | sum "NOT"i "LIKE"i STRING [_ESCAPE STRING]                    -> not_like
    | sum "IS"i "NULL"i                                             -> is_null
    | sum "IS"i "NOT"i "NULL"i                                      -> is_not_null

?sum: product
    | sum SIGN product                                              -> arithmetic
?product: factor
    | product TIMES factor                                          -> arithmetic
?factor: atom
    | SIGN factor                                                   -> signed

?atom: "(" condition ")"
    | literal
    | NAME                                                          -> identifier
    | QUOTED                                                        -> quoted
literals: member ("," member)*
?member: literal
    | SIGN number                                                   -> signed
?literal: number
    | STRING                                                        -> string
    | "TRUE"i                                                       -> true
    | "FALSE"i                                                      -> false
?number: APPROXIMATE                                                -> approximate
    | EXACT                                                         -> exact

COMPARISON: "=" | "<>" | "<=" | ">=" | "<" | ">"
SIGN: "+" | "-"
TIMES: "*" | "/"
_ESCAPE: "ESCAPE"i
STRING: /'(?:[^']|'')*'/
// The literals of Java, as JMS has it: with its suffixes, and hexadecimal and octal ones.
APPROXIMATE.2: /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|[0-9]+[eE][+-]?[0-9]+[fFdD]?|[0-9]+[fFdD]/
EXACT: /(?:0[xX][0-9a-fA-F]+|[0-9]+)[lL]?/
QUOTED: /"(?:[^"]|"")+"/
// With /i, so that OR in ORDER_ID is no keyword and `or` alone is one.
NAME: /(?:[^\W\d]|\$)[\w$.]*/i

%ignore /\s+/
"""
