"""Cross-domain similarities and private moments on Spark, for ratings that one machine cannot hold. Results are the same.

Spark needs its own environment (``pip install -c spark-constraints.txt 'tacit[spark]'``, Java 17 or newer). No other module
of tacit imports it. Every function takes the frames of an existing session, on any cluster. No rows reach the driver: it
sees counts, sums and the tables that it writes to Parquet.
"""
