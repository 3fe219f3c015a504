"""The mathematics of the three papers as small Keras layers.

Einsum letters have one meaning in the whole package:

| letter | axis                        |
|--------|-----------------------------|
| b      | batch                       |
| q      | query position              |
| k      | key position                |
| h      | attention head              |
| d      | width of a head             |
| w      | width of the model          |
| r      | relative position           |
| p      | position to predict         |
| v      | vocabulary entry            |

`"bqhd,bkhd->bhqk"` is then the product of every query with every key, a head at a time.
"""
